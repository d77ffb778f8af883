// A program with a Belay in the situation that is asked for. It writes a line when that has come about.
import { closeOnSignals, openBelay } from "../../src/index.ts";
import { agentIn, type Situation } from "./situations.ts";

const [folder = "", situation, end] = process.argv.slice(2) as [string, Situation, string];
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

let reached = (): void => {};
const began = new Promise<void>((resolve) => {
  reached = resolve;
});
const open = async (name: string) => {
  const store = `${folder}/${name}.db`;
  const belay = await openBelay({ store, agent: agentIn(situation, () => reached()), graceMs: 200, loopWatch: "off" });
  closeOnSignals(belay, { limitMs: 20_000 });
  return belay;
};

const belay = await open("first");
// One that is idle, and closes long before the other.
if (situation === "two Belays") await open("second");
const session = await belay.createSession();
const runs = [session.prompt("go")];
if (situation === "queued prompts") runs.push(session.prompt("next"));
for (const run of runs) run.outcome.catch(() => {});
await Promise.all(runs.map((run) => run.accepted));
if (situation === "waiting approval") {
  for await (const { type } of session.events()) if (type === "question.asked") break;
} else await began;
process.stdin.once("data", () => process.exit(0));
say({ runs: runs.map(({ id }) => id), listeners: process.listenerCount("SIGTERM") });
if (end === "SIGTERM twice") {
  // Added last, so that Belay has received the first signal when this one writes.
  process.once("SIGTERM", () => say({ closing: true }));
}
