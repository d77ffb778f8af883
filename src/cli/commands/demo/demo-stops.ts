// The steps of the demo about stopping: a call, a tool that ignores the stop, a session, and an idle session.
import type { Session } from "../../../sdk/session.ts";
import { formatReceipt, formatSessionReceipt } from "../../shared/format/format-outcome.ts";
import { printHeading, printLine, printMeaning } from "../../shared/terminal/terminal.ts";
import { ask, type DemoContext, ended, firstOf } from "./demo-context.ts";

export async function stopsCall(context: DemoContext, session: Session): Promise<void> {
  printHeading("5. Stop one call: the run and its other call continue");
  const run = ask(session, "count to 4 and count to 9999");
  const endless = await context.until(
    firstOf(run, (event) =>
      event.type === "progress" && JSON.stringify(event.data).includes("9999") ? event.callId : undefined,
    ),
  );
  printLine("you", "stop the call that counts to 9999");
  const receipt = await context.until(
    context.belay.cancel(endless, { reason: { kind: "user", by: "alice", note: "too far" } }),
  );
  printLine("belay", formatReceipt(receipt));
  await ended(context, run);
  printMeaning(
    "A stop travels down, never up. The agent was told who stopped the call and why, with its partial result.",
  );
}

export async function stopsStubborn(context: DemoContext, session: Session): Promise<void> {
  printHeading("8. Stop a run whose tool does not listen");
  const run = ask(session, "be stubborn");
  await context.event(run, "call.requested");
  await context.pause();
  printLine("you", "stop the run, twice");
  const [first, second] = await context.until(Promise.all([run.cancel({ reason: "wrong system" }), run.cancel()]));
  printLine("belay", formatReceipt(first));
  printLine("belay", formatReceipt(second));
  await ended(context, run);
  printMeaning(`It had ${context.pace.graceMs} ms to stop and did not, so it is named. The session is free at once.`);
  while (context.notices.length === 0) await context.pause(context.pace.stepMs);
  printLine("belay", "to the operator: stubborn came back late; its result was dropped");
}

export async function stopsSession(context: DemoContext, session: Session): Promise<void> {
  printHeading("9. Stop a session: exactly the past, nothing of the future");
  const live = ask(session, "count to 9999");
  const queued = ask(session, "then count to 9998");
  await context.event(live, "call.requested");
  await context.pause();
  printLine("you", "stop the session, and prompt again in the same breath");
  const receipt = session.cancel({ reason: "start over" });
  const next = ask(session, "just list the files");
  printLine("belay", formatSessionReceipt(await context.until(receipt)));
  await ended(context, live, "live");
  await ended(context, queued, "queued");
  await ended(context, next, "next");
  printMeaning("What was accepted before ended as cancelled, each for itself. What came after was not touched.");
}

export async function stopsNothing(context: DemoContext, session: Session): Promise<void> {
  printHeading("10. Stop an idle session");
  const before = await context.until(session.explain());
  printLine("you", "stop the session");
  printLine("belay", formatSessionReceipt(await context.until(session.cancel())));
  const { asOf } = await context.until(session.explain());
  printMeaning(`The log stood at position ${before.asOf} before and stands at ${asOf} now.`);
  await context.pause();
}
