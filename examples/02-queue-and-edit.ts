// Prompts for a busy session wait in its queue. Until they start they can be listed, edited, moved and withdrawn.
import { once } from "node:events";
import { openBelay } from "agent-belay";

const gate = new EventTarget();
const belay = await openBelay({
  store: ":memory:",
  agent: async (turn) => {
    if (turn.prompt.text === "first") await once(gate, "open");
    console.log(`running: ${turn.prompt.text}`);
  },
});
const session = await belay.createSession();
const runs = ["first", "second", "third", "fourth"].map((text) => session.prompt(text));
await Promise.all(runs.map((run) => run.accepted));

const [, second, third, fourth] = runs.map((run) => run.id);
if (second === undefined || third === undefined || fourth === undefined) throw new Error("Four were sent.");
console.log((await session.queue.edit(second, "second, better")).kind);
console.log((await session.queue.move(fourth, "front")).kind);
console.log((await session.queue.withdraw(third)).kind);
console.log((await session.queue.list()).map(({ prompt }) => prompt.text));

gate.dispatchEvent(new Event("open"));
console.log((await Promise.all(runs.map((run) => run.outcome))).map((outcome) => outcome.kind));
console.log((await session.queue.edit(second, "too late")).kind);
await belay.close();

// Prints:
//
//   changed
//   changed
//   changed
//   [ 'fourth', 'second, better' ]
//   running: first
//   running: fourth
//   running: second, better
//   [ 'completed', 'completed', 'cancelled', 'completed' ]
//   unknown
