// Four ways to join a busy session. `interrupt` cancels the live run and goes before the queue; `reject` refuses.
import { setTimeout as sleep } from "node:timers/promises";
import { ControlError, openBelay } from "agent-belay";

const belay = await openBelay({
  store: ":memory:",
  agent: async (turn) => {
    console.log(`running: ${turn.prompt.text}`);
    if (turn.prompt.text === "a long one") await sleep(60_000, undefined, { signal: turn.signal });
  },
});
const session = await belay.createSession();
const long = session.prompt("a long one");
const queued = session.prompt("a queued one");
await queued.accepted;

try {
  await session.prompt("only if you are free", { delivery: "reject" }).accepted;
} catch (error) {
  if (error instanceof ControlError) console.log(error.code, "-", error.hint);
}

const urgent = session.prompt("the urgent one", { delivery: "interrupt" });
const [ended, first, second] = await Promise.all([long.outcome, urgent.outcome, queued.outcome]);
console.log(ended.kind, ended.kind === "cancelled" && ended.reason.kind);
console.log(first.kind, second.kind);
await belay.close();

// Prints:
//
//   running: a long one
//   busy - Wait for the live run to end, or use delivery "queue", "steer" or "interrupt".
//   running: the urgent one
//   running: a queued one
//   cancelled superseded
//   completed completed
