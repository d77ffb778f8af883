// The steps of the demo about prompts: the queue, steers, approvals, and a restart in the middle of a run.
import { readdir } from "node:fs/promises";
import type { RunHandle } from "../../../sdk/run.ts";
import type { Session } from "../../../sdk/session.ts";
import { formatOutcome, formatReceipt } from "../../shared/format/format-outcome.ts";
import { printHeading, printLine, printMeaning } from "../../shared/terminal/terminal.ts";
import { ask, type DemoContext, ended } from "./demo-context.ts";

export async function prompts(context: DemoContext, session: Session): Promise<void> {
  printHeading("1. A prompt becomes a run");
  const run = ask(session, "list your files");
  const { seq } = await context.until(run.accepted);
  printLine("belay", `accepted at position ${seq} of the session's log`);
  printMeaning("It is on disk now. From here on it reaches exactly one outcome, whatever happens to this process.");
  await ended(context, run);
}

export async function queues(context: DemoContext, session: Session): Promise<void> {
  printHeading("2. A busy session has a queue, and the queue is yours");
  const live = ask(session, "count to 3");
  const second = ask(session, "read plan.txt");
  const third = ask(session, "and sing it");
  const { ahead } = await context.until(third.accepted);
  printLine("belay", `the third waits; ${ahead} before it`);
  await context.until(session.queue.edit(second.id, "read welcome.txt"));
  printLine("you", 'edit the second: "read welcome.txt"');
  printLine("you", "cancel the third");
  printLine("belay", formatReceipt(await context.until(third.cancel({ reason: "no songs" }))));
  printMeaning("A cancel always answers with a receipt: what was recorded, not what is hoped for.");
  printLine("belay", `third: ${formatOutcome(await context.until(third.outcome))}`);
  await ended(context, live, "first");
  await ended(context, second, "second");
}

export async function steers(context: DemoContext, session: Session): Promise<void> {
  printHeading("3. A steer joins the live run");
  const run = ask(session, "count to 3");
  await context.event(run, "call.requested");
  printLine("you", 'steer "and list the files"');
  const steer = session.prompt("and list the files", { delivery: "steer" });
  printLine("belay", `steer: ${formatOutcome(await context.until(steer.outcome))}`);
  printMeaning("A steer has its own identity and outcome, so no caller waits for a run that never starts.");
  await ended(context, run);
}

export async function approves(context: DemoContext, session: Session): Promise<void> {
  printHeading("4. A tool asks first: no, and then yes");
  const denied = ask(session, "write plan.txt");
  const first = await waitsForYes(context, denied);
  printLine("you", 'no, "not before lunch"');
  await context.until(context.belay.questions.deny(first, { by: "alice", note: "not before lunch" }));
  await ended(context, denied);
  const allowed = ask(session, "write plan.txt");
  const second = await waitsForYes(context, allowed);
  printLine("you", "yes");
  await context.until(context.belay.questions.allow(second, { by: "alice" }));
  await ended(context, allowed);
  const there = (await readdir(context.files)).includes("plan.txt") ? "is there now" : "is not there";
  printMeaning(`plan.txt ${there}. The agent got the reason and continued; an approval is for exactly what was shown.`);
}

async function waitsForYes(context: DemoContext, run: RunHandle): Promise<string> {
  const { questionId, about } = await context.event(run, "question.asked");
  const what = about.kind === "approval" ? `${about.name} ${JSON.stringify(about.input)}` : about.text;
  printLine("belay", `waits for a yes: ${what}`);
  await context.pause();
  return questionId;
}

export async function restarts(context: DemoContext, session: Session): Promise<void> {
  printHeading("11. Stop the server in the middle of a run, and start it again");
  const before = context.begun.get("read_file") ?? 0;
  const run = ask(session, "read welcome.txt");
  await context.event(run, "call.settled");
  await context.pause(6 * context.pace.wordMs);
  printLine("you", "close Belay (mode: park)");
  await context.until(context.belay.close({ mode: "park" }));
  printLine("belay", "closed; the run is parked in the file");
  await context.pause();
  printLine("you", "open the same file again");
  const again = await (await context.until(context.open())).run(run.id);
  printLine("belay", "the run resumes");
  await ended(context, again);
  const begun = (context.begun.get("read_file") ?? 0) - before;
  const times = begun === 1 ? "once" : `${begun} times`;
  printMeaning(`The tool ran ${times}: a call that had ended is answered from the log, not repeated.`);
}
