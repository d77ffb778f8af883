// Whole runs per second: ours, the peers and a loop by hand, on the same work, in turn, on one machine.

import { execFile } from "node:child_process";
import { loadavg } from "node:os";
import { promisify } from "node:util";
import { ascending, type JudgedFigures, percentile, round } from "../report.ts";
import { Contestant } from "./contestant.ts";
import { installPeers } from "./install-peers.ts";
import { type Cell, KINDS, type Measured, PEERS, type PeerName, type SideName } from "./side.ts";

const SIDES: readonly SideName[] = ["ours", "oursInMemory", ...PEERS, "bareLoop", "durableLoop"];
const ROUNDS = 5;
/** Concurrency 32 runs longer: a slow peer gets only a few runs a lane into a second. */
const CELLS: readonly Cell[] = KINDS.flatMap((kind) => [
  { kind, concurrency: 1, ms: 250 },
  { kind, concurrency: 32, ms: 600 },
]);
/** Until most of it is compiled: cold, the AI SDK and OpenAI's run at half of what they can do. */
const WARM_MS = 2_500;
/** Of the last minute, before we add our own. Above it, the AI SDK measured against itself came out as 0.7. */
const BUSY_LOAD = 1;
/** Ours over theirs, at concurrency 32, on the kind of run that suits us less. */
const GOALS: Partial<Readonly<Record<PeerName, number>>> = { aiSdk: 10, openaiAgents: 2, langgraphSqlite: 12 };

/** It keeps nothing, and is compared with us keeping nothing. All others are compared with our full durability. */
const WITHOUT_DURABILITY: PeerName = "openaiAgents";

/** From a cancel to the closed socket of the provider, at the 99th percentile. */
const CLOSED_MS_MAX = 50;

/** The median of the rounds, by cell. */
type Table = ReadonlyMap<string, Measured>;

export async function turns(progress: (line: string) => void): Promise<JudgedFigures> {
  await installPeers(progress);
  const [load = 0] = loadavg();
  if (load > BUSY_LOAD) progress(`the machine is busy (load average ${round(load)}): its figures will mean little`);
  const contestants: Contestant[] = [];
  try {
    for (const name of SIDES) {
      // One after the other: who warms up while five others are loading is compiled later than they.
      const contestant = new Contestant(name);
      contestants.push(contestant);
      await warm(contestant, progress);
    }
    const tables = await rounds(contestants, progress);
    await Promise.all(contestants.map((one) => one.end()));
    progress("stops: from a cancel to the closed socket of the provider …");
    return figuresOf(tables, await stops());
  } catch (error) {
    for (const one of contestants) one.kill();
    throw error;
  }
}

async function warm(contestant: Contestant, progress: (line: string) => void): Promise<void> {
  progress(`${contestant.name}: warming up …`);
  for (const kind of KINDS) await contestant.measure({ kind, concurrency: 32, ms: WARM_MS });
}

/** Cell by cell, everyone in turn, so that a slow minute of the machine hits all of them. */
async function rounds(
  contestants: readonly Contestant[],
  progress: (line: string) => void,
): Promise<ReadonlyMap<SideName, Table>> {
  const tries = new Map(contestants.map(({ name }) => [name, new Map<string, Measured[]>()]));
  for (let count = 1; count <= ROUNDS; count += 1) {
    // There and back, so that nobody always follows the same neighbour.
    const order = count % 2 === 0 ? [...contestants].reverse() : contestants;
    for (const cell of CELLS) {
      const said: string[] = [];
      for (const contestant of order) {
        const measured = await contestant.measure(cell);
        const table = tries.get(contestant.name);
        table?.set(keyOf(cell), [...(table.get(keyOf(cell)) ?? []), measured]);
        said.push(`${contestant.name} ${measured.runsPerSecond}`);
      }
      progress(`round ${count}, ${cell.kind} at ${cell.concurrency}, runs/s: ${said.join(", ")}`);
    }
  }
  return new Map([...tries].map(([name, table]) => [name, mediansOf(table)]));
}

const keyOf = ({ kind, concurrency }: Pick<Cell, "kind" | "concurrency">): string => `${kind}C${concurrency}`;

function mediansOf(table: ReadonlyMap<string, readonly Measured[]>): Table {
  return new Map(
    [...table].map(([key, all]) => {
      const median = (field: keyof Measured): number => percentile(ascending(all.map((one) => one[field])), 0.5);
      return [
        key,
        {
          runsPerSecond: median("runsPerSecond"),
          p50Ms: median("p50Ms"),
          p99Ms: median("p99Ms"),
          cpuMsPerRun: median("cpuMsPerRun"),
        },
      ];
    }),
  );
}

/** In a process of its own, like everybody. */
async function stops(): Promise<Readonly<Record<string, number>>> {
  const { stdout } = await promisify(execFile)(process.execPath, [new URL("./stops.ts", import.meta.url).pathname]);
  return JSON.parse(stdout);
}

function figuresOf(tables: ReadonlyMap<SideName, Table>, stopped: Readonly<Record<string, number>>): JudgedFigures {
  const flat = (name: SideName, prefix: string): Record<string, number> =>
    Object.fromEntries(
      [...(tables.get(name) ?? [])].flatMap(([cell, measured]) =>
        Object.entries(measured).map(([field, value]) => [join(prefix, cell, field), value]),
      ),
    );
  const perSecond = (name: SideName, cell: string): number => tables.get(name)?.get(cell)?.runsPerSecond ?? Number.NaN;
  const cells = KINDS.map((kind) => keyOf({ kind, concurrency: 32 }));
  const over = (our: SideName, peer: PeerName): number =>
    round(Math.min(...cells.map((cell) => perSecond(our, cell) / perSecond(peer, cell))));
  const ratios: Partial<Record<PeerName, number>> = {};
  for (const peer of PEERS) ratios[peer] = over(peer === WITHOUT_DURABILITY ? "oursInMemory" : "ours", peer);
  return {
    ours: { ...flat("ours", ""), ...flat("oursInMemory", "inMemory"), ...stopped },
    peers: Object.assign({}, ...PEERS.map((peer) => flat(peer, peer))),
    floor: { ...flat("bareLoop", "bareLoop"), ...flat("durableLoop", "durableLoop") },
    ratios: { ...ratios, openaiAgentsDurable: over("ours", "openaiAgents") },
    missed: [...missedGoals(ratios), ...slowStops(stopped)],
  };
}

/** "aiSdk", "textC32", "p50Ms" -> "aiSdkTextC32P50Ms". */
function join(...words: readonly string[]): string {
  const [first = "", ...rest] = words.filter((word) => word !== "");
  return first + rest.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1)).join("");
}

function slowStops({ cancelToSocketClosedP99Ms = Number.NaN }: Readonly<Record<string, number>>): readonly string[] {
  return cancelToSocketClosedP99Ms <= CLOSED_MS_MAX
    ? []
    : [`from a cancel to the closed socket: ${cancelToSocketClosedP99Ms} ms (p99), the goal is ${CLOSED_MS_MAX}`];
}

function missedGoals(ratios: Partial<Record<PeerName, number>>): readonly string[] {
  return PEERS.flatMap((peer) => {
    const goal = GOALS[peer];
    const ratio = ratios[peer] ?? Number.NaN;
    return goal === undefined || ratio >= goal ? [] : [`${peer}: ${ratio} times theirs, the goal is ${goal}`];
  });
}
