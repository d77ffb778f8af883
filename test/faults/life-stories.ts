// Stories about processes, sessions that end, people who look, and houses that are started again.
import type { FaultFixture } from "./fault-fixture.ts";
import { inSession, type Story, story } from "./story.ts";

export const LIFE_STORIES: readonly Story[] = [
  inSession("a command that ends", async (stage) => {
    stage.prompt("run");
    await stage.calm();
    end(stage);
    await stage.calm();
  }),
  inSession("a command that is stopped", async (stage) => {
    stage.prompt("run");
    await stage.calm();
    cancelProcess(stage);
    await stage.calm();
  }),
  inSession("a command whose run is stopped", async (stage) => {
    const run = stage.prompt("run");
    await stage.calm();
    stage.cancelRun(run);
    await stage.calm();
  }),
  inSession("a command that goes on in the background", async (stage) => {
    stage.prompt("detach");
    await stage.calm();
    await stage.pass(200);
    end(stage);
    await stage.calm();
  }),
  inSession("a background process that wakes", async (stage) => {
    stage.prompt("wake");
    await stage.calm();
    end(stage);
    await stage.calm();
  }),
  inSession("a background process that waits for a turn", async (stage) => {
    stage.prompt("next");
    await stage.calm();
    end(stage);
    await stage.calm();
    stage.prompt("say");
    await stage.calm();
  }),
  inSession("a background process that is stopped", async (stage) => {
    stage.prompt("silent");
    await stage.calm();
    cancelProcess(stage);
    await stage.calm();
  }),
  inSession("a stop of a session with a background process", async (stage) => {
    stage.prompt("silent");
    await stage.calm();
    stage.cancelSession({ waitMs: 1_000 });
    await stage.calm();
  }),
  inSession("a session that is closed in the middle", async (stage) => {
    stage.prompt("silent");
    await stage.calm();
    stage.prompt("wait");
    stage.prompt("say");
    await stage.calm();
    stage.hold("close session", stage.a.close());
    stage.prompt("say after");
    await stage.calm();
  }),
  inSession("somebody who follows", async (stage) => {
    stage.follow();
    stage.prompt("call");
    await stage.calm();
    stage.follow(2, "with");
    stage.prompt("say");
    await stage.calm();
  }),
  inSession("a log that is trimmed", async (stage) => {
    stage.prompt("say");
    await stage.calm();
    stage.prompt("wait");
    await stage.calm();
    stage.hold("trim", stage.a.trim(4));
    await stage.calm();
    stage.follow();
    await stage.calm();
  }),
  inSession("a session that is deleted at rest", async (stage) => {
    stage.prompt("silent");
    await stage.calm();
    end(stage);
    await stage.calm();
    stage.hold("delete", stage.a.delete());
    await stage.calm();
  }),
  inSession("a session that is deleted in the middle", async (stage) => {
    stage.follow();
    stage.prompt("wait");
    stage.prompt("say");
    await stage.calm();
    stage.hold("delete", stage.a.delete());
    stage.prompt("say after");
    await stage.calm();
    await stage.pass(2_000);
  }),
  inSession(
    "retention of events",
    async (stage) => {
      for (let runs = 0; runs < 4; runs += 1) {
        stage.prompt("say");
        await stage.calm();
      }
      stage.follow();
      await stage.pass(3_000);
      stage.prompt("say");
      await stage.calm();
    },
    { retention: { perSession: { events: 8 } } },
  ),
  inSession(
    "retention of sessions",
    async (stage) => {
      stage.prompt("say");
      await stage.calm();
      await stage.pass(10);
      await stage.create("ses_b");
      stage.prompt("say", {}, "ses_b");
      await stage.calm();
      await stage.pass(3_000);
      stage.hold("ids", stage.life.belay.ids("ses_"));
      stage.hold("status", stage.life.belay.status());
      await stage.calm();
    },
    { retention: { overall: { sessions: 1 } } },
  ),
  inSession("somebody who looks at everything", async (stage) => {
    const run = stage.prompt("slow");
    await stage.calm();
    look(stage, run.id);
    await stage.calm();
    stage.gates.open("slow");
    await stage.calm();
    look(stage, run.id);
    await stage.calm();
  }),
  inSession("a long silence with a live run", async (stage) => {
    stage.prompt("wait");
    await stage.calm();
    await stage.pass(12_000);
    stage.gates.open("wait");
    await stage.calm();
  }),
  inSession("a summary", async (stage) => {
    stage.prompt("compact");
    await stage.calm();
    stage.prompt("say");
    await stage.calm();
  }),
  inSession("an orderly end that sets a live run down", async (stage) => {
    stage.prompt("slow");
    stage.prompt("say");
    await stage.calm();
    await stage.restart("park");
    await stage.calm();
  }),
  inSession("an orderly end that stops what is live", async (stage) => {
    stage.prompt("slow");
    stage.prompt("say");
    await stage.calm();
    await stage.restart("cancel");
    await stage.calm();
  }),
  inSession("a crash in the middle of a turn", async (stage) => {
    stage.prompt("wait");
    stage.prompt("say");
    await stage.calm();
    await stage.restart("crash");
    await stage.pass(12_000);
  }),
  inSession("a crash in the middle of a call", async (stage) => {
    stage.prompt("slow");
    await stage.calm();
    await stage.restart("crash");
    await stage.pass(12_000);
  }),
  inSession("a crash in the middle of calls at the end of a turn", async (stage) => {
    stage.prompt("calls");
    await stage.calm();
    await stage.restart("crash");
    await stage.pass(12_000);
  }),
  inSession("a crash with a background process", async (stage) => {
    stage.prompt("wake");
    await stage.calm();
    await stage.restart("crash");
    await stage.pass(12_000);
  }),
  inSession("a crash in the middle of a stop", async (stage) => {
    const run = stage.prompt("deaf");
    await stage.calm();
    stage.cancelRun(run);
    await stage.calm();
    await stage.restart("crash");
    await stage.pass(12_000);
  }),
  story("a house that is only opened", async (stage) => {
    stage.hold("sessions", stage.life.belay.sessions());
    await stage.calm();
  }),
];

function end(stage: FaultFixture): void {
  for (const child of stage.life.spawner.children) if (child.end === undefined) child.exit();
}

function cancelProcess(stage: FaultFixture): void {
  const processId = stage.last("process.requested")?.processId;
  if (processId !== undefined) stage.cancelProcess(processId);
}

function look(stage: FaultFixture, runId: string): void {
  const { a, life } = stage;
  const { belay } = life;
  stage.hold("row", a.row());
  stage.hold("explain", a.explain());
  stage.hold("transcript", a.transcript());
  stage.hold("questions", a.questions());
  stage.hold("queue", a.queue.list());
  stage.hold("runs", a.runs());
  stage.hold("processes", a.processes.history());
  stage.hold("sessions", belay.sessions());
  stage.hold("live", belay.live());
  stage.hold("home", belay.findSession(runId));
  const text = belay.run(runId).then((run) => run.row());
  stage.hold("run", text);
  const called = stage.last("call.requested");
  if (called !== undefined) stage.hold("home of a call", belay.findSession(called.callId));
}
