// A tool that ignores its signal. After the grace it is given up and named; what it says later is dropped.
import { setTimeout as sleep } from "node:timers/promises";
import { type Notice, openBelay } from "agent-belay";

const { promise: late, resolve: tell } = Promise.withResolvers<Notice>();
const belay = await openBelay({
  store: ":memory:",
  graceMs: 100,
  onNotice: tell,
  agent: async (turn) => {
    if (turn.prompt.text === "hello") return "The session is free.";
    await turn.call("deaf", {}, () => sleep(500, "finished anyway"));
    return undefined;
  },
});
const session = await belay.createSession();
const run = session.prompt("call the deaf one");
for await (const event of run) {
  if (event.type !== "call.requested") continue;
  const { kind, ended } = await run.cancel({ waitMs: 5_000 });
  console.log(kind, ended?.kind, ended?.kind === "settled" && ended.outcome);
}

console.log((await session.prompt("hello").result()).text);
const notice = await late;
console.log(notice.type, notice.type === "late" && `${notice.work} ${notice.outcome}`);
await belay.close();

// Prints:
//
//   stopping settled { kind: 'cancelled', reason: { kind: 'user' }, abandoned: [ 'deaf' ] }
//   The session is free.
//   late deaf completed
