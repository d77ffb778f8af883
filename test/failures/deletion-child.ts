// A program that deletes a session and kills itself before or after one step of it.
import { openBelay } from "../../src/sdk/belay.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite-store.ts";

const [file = "", session = "", step = "1", when = "before"] = process.argv.slice(2);
const store = await openSqliteStore({ file });
const { upkeep } = store;
if (upkeep === undefined) throw new Error("The store has no upkeep.");
let steps = 0;
const remove: typeof upkeep.remove = async (id) => {
  steps += 1;
  const isLast = steps === Number(step);
  if (isLast && when === "before") process.kill(process.pid, "SIGKILL");
  const answering = upkeep.remove(id);
  if (isLast && when === "during") process.kill(process.pid, "SIGKILL");
  const answer = await answering;
  if (isLast) process.kill(process.pid, "SIGKILL");
  return answer;
};
const belay = await openBelay({
  store: Object.assign(store, { upkeep: { ...upkeep, remove } }),
  agent: () => "done",
  loopWatch: "off",
});
await belay.session(session).delete();
process.stdout.write(`${steps}\n`);
await belay.close();
