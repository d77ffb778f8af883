// Stop one tool call. Its run goes on, its siblings too, and the agent is told the truth.
import { setTimeout as sleep } from "node:timers/promises";
import { openBelay } from "agent-belay";

const belay = await openBelay({
  store: ":memory:",
  agent: async (turn) => {
    const [lint, tests] = await Promise.all([
      turn.call("lint", {}, () => sleep(50, "clean")),
      turn.call("tests", {}, async ({ signal, partial }) => {
        partial({ passed: 212 }); // kept if the call is stopped
        await sleep(60_000, undefined, { signal });
      }),
    ]);
    console.log("lint", lint.kind, lint.kind === "completed" && lint.value);
    console.log("tests", tests.kind, tests.kind === "cancelled" && tests.partial);
    return "One of two.";
  },
});
const session = await belay.createSession();
const run = session.prompt("check everything");

for await (const event of run) {
  if (event.type !== "call.requested" || event.name !== "tests") continue;
  const receipt = await belay.cancel(event.callId, { reason: "too slow", waitMs: 0 }); // returns before it has ended
  console.log(receipt.kind);
}
console.log((await run.result()).text);
await belay.close();

// Prints:
//
//   stopping
//   lint completed clean
//   tests cancelled { passed: 212 }
//   One of two.
