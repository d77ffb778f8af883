// The scenes of the demo about asking: prompts, the queue, steers, approvals, and a restart in the middle of it all.
import { readdir } from "node:fs/promises";
import type { RunHandle } from "../../../sdk/run.ts";
import type { Session } from "../../../sdk/session.ts";
import { sayOutcome, sayReceipt } from "../../shared/format/format-outcome.ts";
import { printHeading, printLine, printMeaning } from "../../shared/terminal/terminal.ts";
import { ask, ended, type Stage } from "./demo-stage.ts";

export async function prompts(stage: Stage, session: Session): Promise<void> {
  printHeading("1. A prompt becomes a run");
  const run = ask(session, "list your files");
  const { seq } = await stage.until(run.accepted);
  printLine("belay", `accepted at position ${seq} of the session's log`);
  printMeaning("It is on disk now. From here on it reaches exactly one outcome, whatever happens to this process.");
  await ended(stage, run);
}

export async function queues(stage: Stage, session: Session): Promise<void> {
  printHeading("2. A busy session has a queue, and the queue is yours");
  const live = ask(session, "count to 3");
  const second = ask(session, "read plan.txt");
  const third = ask(session, "and sing it");
  const { ahead } = await stage.until(third.accepted);
  printLine("belay", `the third waits; ${ahead} before it`);
  await stage.until(session.queue.edit(second.id, "read welcome.txt"));
  printLine("you", 'edit the second: "read welcome.txt"');
  printLine("you", "cancel the third");
  printLine("belay", sayReceipt(await stage.until(third.cancel({ reason: "no songs" }))));
  printMeaning("A cancel always answers with a receipt: what was recorded, not what is hoped for.");
  printLine("belay", `third: ${sayOutcome(await stage.until(third.outcome))}`);
  await ended(stage, live, "first");
  await ended(stage, second, "second");
}

export async function steers(stage: Stage, session: Session): Promise<void> {
  printHeading("3. A steer joins the run that is going on");
  const run = ask(session, "count to 3");
  await stage.event(run, "call.requested");
  printLine("you", 'steer "and list the files"');
  const steer = session.prompt("and list the files", { delivery: "steer" });
  printLine("belay", `steer: ${sayOutcome(await stage.until(steer.outcome))}`);
  printMeaning("A steer has an identity and an outcome of its own, so nobody waits for a run that never comes.");
  await ended(stage, run);
}

export async function approves(stage: Stage, session: Session): Promise<void> {
  printHeading("4. A tool asks first: no, and then yes");
  const denied = ask(session, "write plan.txt");
  const first = await waitsForYes(stage, denied);
  printLine("you", 'no, "not before lunch"');
  await stage.until(stage.belay.questions.deny(first, { by: "alice", note: "not before lunch" }));
  await ended(stage, denied);
  const allowed = ask(session, "write plan.txt");
  const second = await waitsForYes(stage, allowed);
  printLine("you", "yes");
  await stage.until(stage.belay.questions.allow(second, { by: "alice" }));
  await ended(stage, allowed);
  const there = (await readdir(stage.files)).includes("plan.txt") ? "is there now" : "is not there";
  printMeaning(`plan.txt ${there}. The agent was told who said no, and went on; a yes is for exactly what was shown.`);
}

async function waitsForYes(stage: Stage, run: RunHandle): Promise<string> {
  const { questionId, about } = await stage.event(run, "question.asked");
  const what = about.kind === "approval" ? `${about.name} ${JSON.stringify(about.input)}` : about.text;
  printLine("belay", `waits for a yes: ${what}`);
  await stage.pause();
  return questionId;
}

export async function restarts(stage: Stage, session: Session): Promise<void> {
  printHeading("11. Stop the server in the middle of a run, and start it again");
  const before = stage.begun.get("read_file") ?? 0;
  const run = ask(session, "read welcome.txt");
  await stage.event(run, "call.settled");
  await stage.pause(6 * stage.pace.wordMs);
  printLine("you", "close Belay (mode: park)");
  await stage.until(stage.belay.close({ mode: "park" }));
  printLine("belay", "closed; the run is parked in the file");
  await stage.pause();
  printLine("you", "open the same file again");
  const again = await (await stage.until(stage.open())).run(run.id);
  printLine("belay", "the run goes on");
  await ended(stage, again);
  const begun = (stage.begun.get("read_file") ?? 0) - before;
  const times = begun === 1 ? "once" : `${begun} times`;
  printMeaning(`The tool ran ${times}: a call that had ended is answered from the log, not repeated.`);
}
