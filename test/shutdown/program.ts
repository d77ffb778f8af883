// A program with a Belay in the situation that is asked for. It writes a line when that has come about. If its store
// has a run that was parked, it takes that up and begins nothing.
import { closeOnSignals, openBelay } from "../../src/index.ts";
import { agentIn, begin, hasTwoBelays, hooksIn, type Situation } from "./situations.ts";

const [folder = "", situation, end] = process.argv.slice(2) as [string, Situation, string];
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);

let reached = (): void => {};
const began = new Promise<void>((resolve) => {
  reached = resolve;
});
const open = async (name: string) => {
  const belay = await openBelay({
    ...{ store: `${folder}/${name}.db`, graceMs: 200, loopWatch: "off" },
    agent: agentIn(situation, () => reached()),
    hooks: hooksIn(situation, () => reached()),
  });
  closeOnSignals(belay, { limitMs: 20_000 });
  return belay;
};

const belay = await open("first");
// One that is idle, and closes long before the other.
if (hasTwoBelays(situation)) await open("second");
const [known] = await belay.sessions();
if (known === undefined) {
  const runs = await begin(situation, await belay.createSession(), began);
  say({ runs: runs.map(({ id }) => id), listeners: process.listenerCount("SIGTERM") });
} else {
  await began;
  say({ runs: [], listeners: process.listenerCount("SIGTERM") });
}
process.stdin.once("data", () => process.exit(0));
if (end === "SIGTERM twice" || end === "SIGKILL while it closes") {
  // Added last, so that Belay has received the first signal when this one writes.
  process.once("SIGTERM", () => say({ closing: true }));
}
