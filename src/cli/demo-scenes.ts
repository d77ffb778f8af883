// The scenes of the demo, in order. Each shows one promise, and says what the answer meant.
import type { Outcome } from "../core/cancel.ts";
import type { RunHandle } from "../library/run.ts";
import type { Session } from "../library/session.ts";
import { ask, type Stage } from "./demo-stage.ts";
import { printHeading, printLine, printMeaning } from "./terminal.ts";
import { sayOutcome, sayReceipt, saySessionReceipt } from "./words.ts";

export async function prompts(stage: Stage, session: Session): Promise<void> {
  printHeading("1. A prompt becomes a run");
  const run = ask(session, "write the release notes");
  const { seq } = await stage.until(run.accepted);
  printLine("belay", `accepted at position ${seq} of the session's log`);
  printMeaning("It is on disk now. From here on it reaches exactly one outcome, whatever happens to this process.");
  await ended(stage, run);
}

export async function queues(stage: Stage, session: Session): Promise<void> {
  printHeading("2. A busy session has a queue, and the queue is yours");
  const live = ask(session, "tidy the changelog");
  const second = ask(session, "translate it to Frisian");
  const third = ask(session, "and to Breton");
  const { ahead } = await stage.until(third.accepted);
  printLine("belay", `the third waits; ${ahead} before it`);
  await stage.until(session.queue.edit(second.id, "translate it to Welsh"));
  printLine("you", 'edit the second: "translate it to Welsh"');
  printLine("you", "cancel the third");
  printLine("belay", sayReceipt(await stage.until(third.cancel({ reason: "one language is enough" }))));
  printMeaning("A cancel always answers with a receipt: what was recorded, not what is hoped for.");
  printLine("belay", `third: ${sayOutcome(await stage.until(third.outcome))}`);
  await ended(stage, live, "first");
  await ended(stage, second, "second");
}

export async function steers(stage: Stage, session: Session): Promise<void> {
  printHeading("3. A steer joins the run that is going on");
  const run = ask(session, "plan the migration");
  await stage.event(run, "turn.requested");
  printLine("you", 'steer "keep the old table"');
  const steer = session.prompt("keep the old table", { delivery: "steer" });
  printLine("belay", `steer: ${sayOutcome(await stage.until(steer.outcome))}`);
  printMeaning("A steer has an identity and an outcome of its own, so nobody waits for a run that never comes.");
  await ended(stage, run);
}

export async function cancelsCall(stage: Stage, session: Session): Promise<void> {
  printHeading("4. Cancel one call: the run and its other calls go on");
  const run = ask(session, "build the site and test it", "call");
  const tests = await stage.until(callNamed(run, "tests"));
  await stage.pause(stage.pace.toolMs);
  printLine("you", "cancel the call `tests`");
  printLine("belay", sayReceipt(await stage.until(stage.belay.cancel(tests, { reason: "too slow" }))));
  await ended(stage, run);
  printMeaning(
    "Cancel travels down, never up. The agent was told the truth about the call, with what there was of it.",
  );
}

export async function cancelsDeaf(stage: Stage, session: Session): Promise<void> {
  printHeading("5. Cancel a run whose tool does not listen");
  const run = ask(session, "sync with the old system", "ignore");
  await stage.event(run, "call.requested");
  await stage.pause();
  printLine("you", "cancel the run, twice");
  const [first, second] = await stage.until(Promise.all([run.cancel({ reason: "wrong system" }), run.cancel()]));
  printLine("belay", sayReceipt(first));
  printLine("belay", sayReceipt(second));
  await ended(stage, run);
  printMeaning(`It had ${stage.pace.graceMs} ms to stop and did not, so it is named. The session is free at once.`);
  while (stage.notices.length === 0) await stage.pause(stage.pace.toolMs);
  printLine("belay", "to the operator: legacy_sync came back late; its result was dropped");
}

export async function cancelsSession(stage: Stage, session: Session): Promise<void> {
  printHeading("6. Cancel a session: exactly the past, nothing of the future");
  const live = ask(session, "rewrite everything");
  const queued = ask(session, "then rewrite it back");
  await stage.event(live, "turn.requested");
  await stage.pause();
  printLine("you", "cancel the session, and prompt again in the same breath");
  const receipt = session.cancel({ reason: "start over" });
  const next = ask(session, "just fix the typo");
  printLine("belay", saySessionReceipt(await stage.until(receipt)));
  await ended(stage, live, "live");
  await ended(stage, queued, "queued");
  await ended(stage, next, "next");
  printMeaning(
    "What was accepted before the cancel ended as cancelled, each for itself. What came after was not touched.",
  );
}

export async function cancelsNothing(stage: Stage, session: Session): Promise<void> {
  printHeading("7. Cancel an idle session");
  const before = await stage.until(session.explain());
  printLine("you", "cancel the session");
  printLine("belay", saySessionReceipt(await stage.until(session.cancel())));
  const { asOf } = await stage.until(session.explain());
  printMeaning(`The log stood at position ${before.asOf} before and stands at ${asOf} now.`);
  await stage.pause();
}

export async function restarts(stage: Stage, session: Session): Promise<void> {
  printHeading("8. Stop the server in the middle of a run, and start it again");
  const run = ask(session, "report the figures", "report");
  await stage.event(run, "call.settled");
  await stage.pause(3 * stage.pace.wordMs);
  printLine("you", "close Belay (mode: park)");
  await stage.until(stage.belay.close({ mode: "park" }));
  printLine("belay", "closed; the run is parked in the file");
  await stage.pause();
  printLine("you", "open the same file again");
  const again = await (await stage.until(stage.open())).run(run.id);
  printLine("belay", "the run goes on");
  await ended(stage, again);
  const times = stage.agent.collected === 1 ? "once" : `${stage.agent.collected} times`;
  printMeaning(`The tool ran ${times}: a call that had ended is answered from the log, not repeated.`);
}

/** Says how a run ended, and the agent's words if it said any. */
async function ended(stage: Stage, run: RunHandle, name?: string): Promise<Outcome> {
  const outcome = await stage.until(run.outcome);
  const text = await stage.until(run.text());
  if (text !== "") printLine("agent", text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text);
  printLine("belay", `${name === undefined ? "" : `${name}: `}${sayOutcome(outcome)}`);
  await stage.pause();
  return outcome;
}

/** What fits a line beside the speaker's name. */
const TEXT_MAX = 110;

async function callNamed(run: RunHandle, name: string): Promise<`call_${string}`> {
  for await (const event of run) {
    if (event.type === "call.requested" && event.name === name) return event.callId;
  }
  throw new Error(`The run ended without ${name}.`);
}
