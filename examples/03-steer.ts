// A steer is taken into the run that is going on. It has a receipt and an outcome of its own.
import { once } from "node:events";
import { openBelay } from "agent-belay";

const gate = new EventTarget();
const belay = await openBelay({
  store: ":memory:",
  agent: async (turn) => {
    turn.emit(`Planning: ${turn.prompt.text}. `);
    await once(gate, "open");
    // Between two steps an agent takes in what people have added. The rest is in the transcript of its next turn.
    for (const { text } of await turn.takeSteers()) turn.emit(`Noted: ${text}. `);
  },
});
const session = await belay.createSession();
const run = session.prompt("migrate the database");
await run.accepted;

const steer = session.prompt("keep the old table", { delivery: "steer" });
console.log((await steer.accepted).joined);
gate.dispatchEvent(new Event("open"));

const outcome = await steer.outcome;
console.log(outcome.kind, outcome.kind === "completed" && outcome.into === run.id);
console.log((await run.result()).text);

// Nobody to steer: it becomes a queued run, so that it is not lost.
const late = session.prompt("and thank you", { delivery: "steer" });
console.log((await late.accepted).joined);
await belay.close({ mode: "cancel" });

// Prints:
//
//   steer
//   completed true
//   Planning: migrate the database. Noted: keep the old table.
//   queue
