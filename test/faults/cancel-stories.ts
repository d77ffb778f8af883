// Stories about stops: of sessions, runs, calls, processes and questions, in every phase of their lives.
import type { CallId } from "../../src/core/model/ids.ts";
import type { FaultFixture } from "./fault-fixture.ts";
import { inSession, type Story } from "./story.ts";

export const CANCEL_STORIES: readonly Story[] = [
  inSession("a stop of a session that is idle", async (stage) => {
    stage.cancelSession();
    await stage.calm();
  }),
  inSession("a stop of a session with a live run and a queue", async (stage) => {
    stage.prompt("wait");
    stage.prompt("say");
    await stage.calm();
    stage.cancelSession({ waitMs: 1_000 });
    stage.prompt("say after");
    await stage.calm();
  }),
  inSession("a stop of everything", async (stage) => {
    stage.prompt("wait");
    await stage.calm();
    stage.hold("cancel all", stage.life.belay.cancelAll({ waitMs: 1_000 }));
    await stage.calm();
  }),
  inSession("a stop of a run that waits", async (stage) => {
    stage.prompt("wait");
    const run = stage.prompt("say");
    await stage.calm();
    stage.cancelRun(run);
    await stage.calm();
  }),
  inSession("a stop of a live run, twice", async (stage) => {
    const run = stage.prompt("wait");
    await stage.calm();
    stage.cancelRun(run, { waitMs: 1_000 });
    await stage.calm();
    stage.cancelId(run.id);
    await stage.calm();
  }),
  inSession("a stop in the tick of the prompt", async (stage) => {
    stage.cancelRun(stage.prompt("wait"));
    await stage.calm();
  }),
  inSession("a stop by a key that is on its way", async (stage) => {
    stage.prompt("wait", { key: "k" });
    stage.cancelKey("k");
    await stage.calm();
    stage.cancelKey("k", { key: "once" });
    await stage.calm();
    stage.cancelKey("k", { key: "once" });
    await stage.calm();
  }),
  inSession("a stop of somebody who is deaf", async (stage) => {
    const run = stage.prompt("deaf");
    await stage.calm();
    stage.cancelRun(run);
    await stage.calm();
    await stage.pass(2_000);
  }),
  inSession("a stop of a run that has ended", async (stage) => {
    const run = stage.prompt("say");
    await stage.calm();
    stage.cancelRun(run);
    await stage.calm();
  }),
  inSession("a run that stops itself", async (stage) => {
    stage.prompt("stop");
    await stage.calm();
  }),
  inSession(
    "a run that takes too long",
    async (stage) => {
      stage.prompt("wait");
      await stage.calm();
      await stage.pass(5_000);
    },
    { runLimitMs: 4_000 },
  ),
  inSession("a call", async (stage) => {
    stage.prompt("call");
    await stage.calm();
  }),
  inSession("a stop of a call", async (stage) => {
    stage.prompt("slow");
    await stage.calm();
    cancelCall(stage);
    await stage.calm();
  }),
  inSession("a stop of a call that is deaf", async (stage) => {
    stage.prompt("stubborn");
    await stage.calm();
    cancelCall(stage);
    await stage.calm();
    await stage.pass(2_000);
  }),
  inSession("a stop of a run with a call", async (stage) => {
    const run = stage.prompt("slow");
    await stage.calm();
    stage.cancelRun(run, { waitMs: 1_000 });
    await stage.calm();
  }),
  inSession("calls at the end of a turn", async (stage) => {
    stage.prompt("calls");
    await stage.calm();
    stage.gates.open("slow");
    await stage.calm();
  }),
  inSession("calls at the end of a turn, one of them stopped", async (stage) => {
    stage.prompt("calls");
    await stage.calm();
    const called = stage.logs.get("ses_a")?.find((event) => event.type === "call.requested");
    if (called?.type === "call.requested") cancelCall(stage, called.callId);
    await stage.calm();
  }),
  inSession("an approval that is given", async (stage) => {
    stage.prompt("approve");
    await stage.calm();
    answer(stage, "allow");
    await stage.calm();
  }),
  inSession("an approval that is denied", async (stage) => {
    stage.prompt("approved");
    await stage.calm();
    answer(stage, "deny");
    await stage.calm();
  }),
  inSession("an approval that nobody gives", async (stage) => {
    stage.prompt("approve");
    await stage.calm();
    await stage.pass(6_000);
  }),
  inSession("an approval that is taken back", async (stage) => {
    stage.prompt("approved");
    await stage.calm();
    const asked = stage.last("question.asked");
    if (asked !== undefined) stage.hold("cancel question", stage.life.belay.cancel(asked.questionId));
    await stage.calm();
  }),
  inSession("a question that is answered", async (stage) => {
    stage.prompt("ask");
    await stage.calm();
    const asked = stage.last("question.asked");
    if (asked !== undefined) {
      const { questionId } = asked;
      const ending = { kind: "answered", value: "this" };
      stage.reply(stage.life.belay.questions.answer(questionId, "this"), questionId, ending);
    }
    await stage.calm();
  }),
  inSession("a stop of a run that asks", async (stage) => {
    const run = stage.prompt("ask");
    await stage.calm();
    stage.cancelRun(run);
    await stage.calm();
  }),
];

function cancelCall(stage: FaultFixture, callId: CallId | undefined = stage.last("call.requested")?.callId): void {
  if (callId !== undefined) stage.cancelCall(callId);
}

function answer(stage: FaultFixture, how: "allow" | "deny"): void {
  const questionId = stage.last("question.asked")?.questionId;
  if (questionId === undefined) return;
  const { questions } = stage.life.belay;
  const ending = { kind: how === "allow" ? "allowed" : "denied" };
  const promise = how === "allow" ? questions.allow(questionId) : questions.deny(questionId);
  stage.reply(promise, questionId, ending);
}
