// Follow a session from any position: first what was, then what comes, each event once. The cursor is its `seq`.
import { openBelay } from "agent-belay";

const belay = await openBelay({ store: ":memory:", agent: (turn) => `Re: ${turn.prompt.text}` });
const session = await belay.createSession();
await session.prompt("one").outcome;

let cursor = 0;
for await (const event of session.events()) {
  if (!("seq" in event)) continue; // a delta or a gap; neither has a position
  console.log(event.seq, event.type);
  cursor = event.seq;
  if (event.type === "turn.requested") break; // a reader that goes away stops nothing
}

const second = session.prompt("two");
for await (const event of session.events({ after: cursor })) {
  if ("seq" in event) console.log(event.seq, event.type);
  if (event.type === "run.settled" && event.runId === second.id) break;
}
await belay.close();

// Prints:
//
//   1 session.created
//   2 run.accepted
//   3 run.started
//   4 turn.requested
//   5 turn.settled
//   6 run.settled
//   7 run.accepted
//   8 run.started
//   9 turn.requested
//   10 turn.settled
//   11 run.settled
