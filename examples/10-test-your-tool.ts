// Is my tool safe to cancel? Stop it in the middle, and look at what it leaves. No waiting: the clock is yours.
import assert from "node:assert/strict";
import { type LiveCall, openBelay } from "agent-belay";
import { manualClock, scriptedAgent } from "agent-belay/testing";

const clock = manualClock();
const agent = scriptedAgent();
const belay = await openBelay({ agent, clock, store: ":memory:", graceMs: 1_500 });
const session = await belay.createSession();

/** The tool under test: copies one file after the other, and looks at its signal before each. */
async function copyAll({ input, signal, partial }: LiveCall, copied: string[], betweenFiles: () => Promise<unknown>) {
  for (const file of input as readonly string[]) {
    signal.throwIfAborted();
    copied.push(file);
    partial(copied.length);
    await betweenFiles();
  }
}

const copied: string[] = [];
session.prompt("copy them");
const first = await agent.nextTurn();
const call = first.call("copy", ["a", "b", "c"], (live) =>
  copyAll(live, copied, () => belay.cancel(live.callId, { waitMs: 0 })),
);
const result = await call.result;
assert.equal(result.kind, "cancelled");
assert.deepEqual(copied, ["a"]);
console.log("it stops between two files, and says how far it came:", result.kind === "cancelled" && result.partial);
first.complete();

// The same question for one that never looks: it costs the grace, is given up, and is named.
const run = session.prompt("copy them, deaf");
const second = await agent.nextTurn();
await second.call("deaf copy").begun;
await run.cancel();
second.endCancelled();
await clock.advance(1_500);
const outcome = await run.outcome;
console.log("a deaf one is named:", outcome.kind === "cancelled" && outcome.abandoned);
await belay.close();

// Prints:
//
//   it stops between two files, and says how far it came: 1
//   a deaf one is named: [ 'deaf copy' ]
