// The scenes of the demo about stopping: a call, a tool that does not listen, a session, and nothing at all.
import type { Session } from "../../../sdk/session.ts";
import { sayReceipt, saySessionReceipt } from "../../shared/format/format-outcome.ts";
import { printHeading, printLine, printMeaning } from "../../shared/terminal/terminal.ts";
import { ask, ended, firstOf, type Stage } from "./demo-stage.ts";

export async function stopsCall(stage: Stage, session: Session): Promise<void> {
  printHeading("5. Stop one call: the run and its other call go on");
  const run = ask(session, "count to 4 and count to 9999");
  const endless = await stage.until(
    firstOf(run, (event) =>
      event.type === "progress" && JSON.stringify(event.data).includes("9999") ? event.callId : undefined,
    ),
  );
  printLine("you", "stop the call that counts to 9999");
  const receipt = await stage.until(
    stage.belay.cancel(endless, { reason: { kind: "user", by: "alice", note: "too far" } }),
  );
  printLine("belay", sayReceipt(receipt));
  await ended(stage, run);
  printMeaning("A stop travels down, never up. The agent was told who stopped the call and why, with what there was.");
}

export async function stopsStubborn(stage: Stage, session: Session): Promise<void> {
  printHeading("8. Stop a run whose tool does not listen");
  const run = ask(session, "be stubborn");
  await stage.event(run, "call.requested");
  await stage.pause();
  printLine("you", "stop the run, twice");
  const [first, second] = await stage.until(Promise.all([run.cancel({ reason: "wrong system" }), run.cancel()]));
  printLine("belay", sayReceipt(first));
  printLine("belay", sayReceipt(second));
  await ended(stage, run);
  printMeaning(`It had ${stage.pace.graceMs} ms to stop and did not, so it is named. The session is free at once.`);
  while (stage.notices.length === 0) await stage.pause(stage.pace.stepMs);
  printLine("belay", "to the operator: stubborn came back late; its result was dropped");
}

export async function stopsSession(stage: Stage, session: Session): Promise<void> {
  printHeading("9. Stop a session: exactly the past, nothing of the future");
  const live = ask(session, "count to 9999");
  const queued = ask(session, "then count to 9998");
  await stage.event(live, "call.requested");
  await stage.pause();
  printLine("you", "stop the session, and prompt again in the same breath");
  const receipt = session.cancel({ reason: "start over" });
  const next = ask(session, "just list the files");
  printLine("belay", saySessionReceipt(await stage.until(receipt)));
  await ended(stage, live, "live");
  await ended(stage, queued, "queued");
  await ended(stage, next, "next");
  printMeaning("What was accepted before ended as cancelled, each for itself. What came after was not touched.");
}

export async function stopsNothing(stage: Stage, session: Session): Promise<void> {
  printHeading("10. Stop an idle session");
  const before = await stage.until(session.explain());
  printLine("you", "stop the session");
  printLine("belay", saySessionReceipt(await stage.until(session.cancel())));
  const { asOf } = await stage.until(session.explain());
  printMeaning(`The log stood at position ${before.asOf} before and stands at ${asOf} now.`);
  await stage.pause();
}
