// Close Belay in the middle of a run and open the same file again: the run goes on, and what has ended is not repeated.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Agent, openBelay } from "agent-belay";

const folder = mkdtempSync(join(tmpdir(), "belay-example-"));
const store = join(folder, "belay.db");
let life = 1;

const agent: Agent = async (turn) => {
  const paid = await turn.call("pay", { euro: 20 }, () => {
    console.log("paying");
    return "receipt 4711";
  });
  turn.emit(`In life ${life}: `);
  if (life === 1) await sleep(60_000, undefined, { signal: turn.signal });
  turn.emit(paid.kind === "completed" ? `paid, ${paid.value}.` : paid.kind);
};

const first = await openBelay({ store, agent });
const session = await first.createSession();
const run = session.prompt("pay the bill");
for await (const event of run) if (event.type === "call.settled") break;
await first.close(); // `park` is the default: live runs are set down, queued ones stay queued

life = 2;
const second = await openBelay({ store, agent });
const again = await second.run(run.id);
console.log((await again.result()).text);
await second.close();
rmSync(folder, { recursive: true });

// Prints:
//
//   paying
//   In life 2: paid, receipt 4711.
