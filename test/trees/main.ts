// Starts trees that resist being killed, ends them, and counts survivors. `npm run trees -- --rounds 100`
//
//   --rounds N       rounds of all shapes, per mechanism (default 3)
//   --parent-kill    the trees belong to a separate server, which is killed with SIGKILL; survivors after 2 s count
//   --mechanism M    only this one: bubblewrap, unshare, cgroup, anchor, group
//   --tier T         only those of this tier: namespace, cgroup, anchor, group
//   --concurrency N  trees at once (default 1, so that no other tree delays the measured one)
//   --seed S         the order of the shapes (default 1)
//   --force          kills every shape at once, even those that would react to SIGTERM
//   --attacks        also attacks the server from inside, and prints the results by mechanism
//   --json           the last line is one object
//
// Exits with 1 if an undocumented process survived.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Mechanism, Tier } from "../../src/ports/spawner.ts";
import { ATTACKS, type Attack, ENFORCEMENT, type Enforcement } from "../../src/process/containment/attacks.ts";
import { diagnose } from "../../src/process/containment/doctor.ts";
import { lookAtMachine } from "../../src/process/containment/machine.ts";
import { type OpenSpawner, openSpawner } from "../../src/process/spawner.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { optionsOf, refuse, wholeNumber } from "../run/suite.ts";
import { ATTACK_NAMES, carryOut, PROFILES } from "./attacks.ts";
import { bareKill } from "./bare-kill.ts";
import { type Figures, report, summarise, type TreeResult } from "./figures.ts";
import { marked, markOf, SHAPES, type Shape, survivorsOf } from "./shapes.ts";

/** How long trees may outlive their server. */
const PARENT_KILL_MS_MAX = 2_000;

/** How long a shape may take to come up on a busy machine. */
const UP_MS_MAX = 60_000;

const values = optionsOf({
  rounds: { type: "string", default: "3" },
  "parent-kill": { type: "boolean", default: false },
  mechanism: { type: "string" },
  tier: { type: "string" },
  concurrency: { type: "string", default: "1" },
  seed: { type: "string", default: "1" },
  force: { type: "boolean", default: false },
  attacks: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});
const rounds = wholeNumber(values.rounds, "--rounds");
const seed = wholeNumber(values.seed, "--seed");
const concurrency = wholeNumber(values.concurrency, "--concurrency");
const shown = process.stderr.isTTY === true;
let marks = (process.pid % 10_000) * 10_000;

const wanted = await mechanismsHere();
if (wanted.length === 0) refuse("None of the requested mechanisms works here: run belay doctor for those that do.");
const all = new Map<Mechanism, Figures>();
for (const { mechanism, tier } of wanted) {
  const results = values["parent-kill"] ? await killParents(mechanism) : await stopTrees(mechanism);
  const figures = summarise(tier, results);
  all.set(mechanism, figures);
  print(mechanism, figures);
}
const bare = await measureBareKill();
const attacks = values.attacks ? await attackAll() : {};
if (values.json)
  console.log(JSON.stringify({ ...report(all, { seed, parentKill: values["parent-kill"] }), ...bare, ...attacks }));
const bad = [...all.values()].some(({ survivors, troubles }) => survivors > 0 || troubles.length > 0);
process.exitCode = bad || process.exitCode === 1 ? 1 : 0;

async function mechanismsHere(): Promise<readonly { readonly mechanism: Mechanism; readonly tier: Tier }[]> {
  const dir = mkdtempSync(join(tmpdir(), "belay-trees-"));
  const machine = lookAtMachine();
  const { mechanisms } = await diagnose({ machine, stateDir: dir, workspace: dir, clock: systemClock });
  rmSync(dir, { recursive: true, force: true });
  for (const { mechanism, test, fix } of mechanisms) {
    if (test.kind === "failed") console.error(`${mechanism} is not tried: ${test.why}. ${fix ?? ""}`);
  }
  return mechanisms.filter(
    ({ mechanism, tier, test }) =>
      test.kind === "passed" &&
      (values.mechanism === undefined || values.mechanism === mechanism) &&
      (values.tier === undefined || values.tier === tier),
  );
}

/** A result that differs from the documented one fails the suite. */
async function attackAll(): Promise<object> {
  const rows: Partial<Record<Attack, Partial<Record<Mechanism, Enforcement>>>> = {};
  for (const attack of ATTACK_NAMES) {
    for (const [mechanism, profile] of wanted.flatMap((one) =>
      PROFILES[one.mechanism].map((profile) => [one.mechanism, profile] as const),
    )) {
      const result = await carryOut(attack, mechanism, profile);
      const expected = ENFORCEMENT[attack][mechanism];
      const isExpected = result === expected;
      // One profile with another result is the result of the mechanism.
      if (!isExpected || rows[attack]?.[mechanism] === undefined)
        rows[attack] = { ...rows[attack], [mechanism]: result };
      if (!isExpected) process.exitCode = 1;
      console.error(
        `${mechanism}, ${profile}: ${ATTACKS[attack]}: ${result}${isExpected ? "" : ` (documented: ${expected})`}`,
      );
    }
  }
  return { attacks: rows };
}

/** Only where it is comparable: the same mechanism, the same trees, all of them killed. */
async function measureBareKill(): Promise<object> {
  const { bwrap } = lookAtMachine().programs;
  if (bwrap === undefined || !values.force || values["parent-kill"] || !all.has("bubblewrap")) return {};
  const { trees, ...figures } = await bareKill(bwrap, rounds, marks);
  const { bareKillP50Ms, bareKillP99Ms } = figures;
  console.error(`bare kill by the kernel: ${trees} trees, p50 ${bareKillP50Ms} ms, p99 ${bareKillP99Ms} ms`);
  return figures;
}

async function stopTrees(mechanism: Mechanism): Promise<readonly TreeResult[]> {
  const dir = mkdtempSync(join(tmpdir(), "belay-trees-"));
  const spawner = await openSpawner({ dir, workspace: dir, clock: systemClock, mechanism });
  const results: TreeResult[] = [];
  const waiting = shuffled(Array.from({ length: rounds }, () => SHAPES).flat());
  const total = waiting.length;
  const lane = async (): Promise<void> => {
    for (let shape = waiting.pop(); shape !== undefined; shape = waiting.pop()) {
      results.push(await stopTree(spawner, shape));
      progress(`${mechanism}: ${results.length} of ${total} trees`);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, lane));
  await spawner.close();
  rmSync(dir, { recursive: true, force: true });
  return results;
}

async function stopTree(spawner: OpenSpawner, shape: Shape): Promise<TreeResult> {
  marks += 1;
  const mark = markOf(marks);
  const child = await spawner.spawn({
    id: `proc_trees.${marks}`,
    sessionId: "ses_trees",
    command: shape.command(mark),
  });
  for await (const page of child.output.follow()) if (page.text.includes("up")) break;
  const forced = shape.end === "forced" || (values.force && shape.end === "asked");
  const began = performance.now();
  if (shape.end !== "alone") child.stop(forced ? 0 : undefined);
  const end = await child.ended;
  const ms = performance.now() - began;
  const survivors = survivorsOf(mark);
  kill(survivors);
  const { head } = child.output.excerpt();
  // A tree that has killed its leader must be reported as unverified.
  const isUnsure = shape.unsure?.includes(spawner.mechanism) === true;
  const unexpected = isUnsure === end.escaped.length > 0 ? [] : [`escaped: ${end.escaped.join(" ")}`];
  const unsaid = forced ? [] : (shape.says ?? []).filter((words) => !head.includes(words));
  return {
    ...{ shape: shape.name, forced, survivors: survivors.length, leak: shape.leaks?.[spawner.mechanism] },
    // A tree that ends by itself was not cancelled.
    ms: shape.end === "alone" ? undefined : ms,
    trouble:
      unsaid.length + unexpected.length > 0
        ? `${shape.name}: ${[...unsaid.map((words) => `did not say "${words}"`), ...unexpected].join(", ")}`
        : undefined,
  };
}

async function killParents(mechanism: Mechanism): Promise<readonly TreeResult[]> {
  const results: TreeResult[] = [];
  for (let round = 0; round < rounds; round += 1) {
    results.push(...(await killParent(mechanism)));
    progress(`${mechanism}: ${round + 1} of ${rounds} servers`);
  }
  return results;
}

async function killParent(mechanism: Mechanism): Promise<readonly TreeResult[]> {
  const dir = mkdtempSync(join(tmpdir(), "belay-trees-"));
  const trees = SHAPES.map((shape, index) => ({ shape, mark: markOf(marks + index) }));
  const args = [join(import.meta.dirname, "owner.ts"), dir, mechanism, String(marks)];
  marks += SHAPES.length;
  const owner = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const gone = new Promise((resolve) => owner.once("exit", resolve));
  const up = new Promise((resolve) => owner.stdout.once("data", resolve));
  const late = new AbortController();
  await Promise.race([up, gone, pause(UP_MS_MAX, undefined, { signal: late.signal })]);
  late.abort();
  const began = performance.now();
  owner.kill("SIGKILL");
  await gone;
  const died = new Map<string, number>();
  let alive = marked(trees.map(({ mark }) => mark));
  while (true) {
    const ms = performance.now() - began;
    for (const { mark } of trees) if (!alive.has(mark) && !died.has(mark)) died.set(mark, ms);
    if (died.size === trees.length || ms > PARENT_KILL_MS_MAX) break;
    await pause(5);
    alive = marked(trees.map(({ mark }) => mark));
  }
  // Processes that were faster than the watchdog are left to the next server.
  const unfound = alive;
  if (alive.size > 0) {
    const next = await openSpawner({ dir, workspace: dir, clock: systemClock, mechanism });
    alive = marked(trees.map(({ mark }) => mark));
    await next.close();
  }
  const results = trees
    .filter(({ shape }) => shape.end !== "alone")
    .map(({ shape, mark }): TreeResult => {
      const left = alive.get(mark) ?? [];
      const atNextStart = (unfound.get(mark)?.length ?? 0) - left.length;
      kill(left);
      const leak = shape.leaks?.[mechanism] ?? shape.leaksWithoutServer?.[mechanism];
      const common = {
        shape: shape.name,
        forced: false,
        survivors: left.length,
        leak,
        trouble: undefined,
        atNextStart,
      };
      return { ...common, ms: died.get(mark) };
    });
  rmSync(dir, { recursive: true, force: true });
  return results;
}

function kill(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // Gone by itself.
    }
  }
}

/** The same order for the same seed. */
function shuffled(shapes: readonly Shape[]): Shape[] {
  const mixed = [...shapes];
  let state = seed >>> 0;
  for (let at = mixed.length - 1; at > 0; at -= 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const other = state % (at + 1);
    const [one, two] = [mixed[at], mixed[other]];
    if (one !== undefined && two !== undefined) [mixed[at], mixed[other]] = [two, one];
  }
  return mixed;
}

function print(mechanism: Mechanism, figures: Figures): void {
  progress("");
  const { trees, survivors, cancelToDeadP50Ms, cancelToDeadP99Ms, documentedLeaks, troubles } = figures;
  const what = values["parent-kill"] ? "server killed → dead" : "cancel → dead";
  const times = `${what} p50 ${cancelToDeadP50Ms} ms, p99 ${cancelToDeadP99Ms} ms`;
  const line = `${mechanism} (${figures.tier}): ${trees} trees, ${survivors} survivors, ${times}`;
  (values.json ? console.error : console.log)(line);
  for (const [shape, why] of Object.entries(documentedLeaks)) console.error(`  known to survive: ${shape}: ${why}`);
  for (const [shape, count] of Object.entries(figures.survived)) console.error(`  SURVIVED: ${shape}: ${count}`);
  for (const trouble of troubles) console.error(`  trouble: ${trouble}`);
}

function progress(text: string): void {
  if (shown) process.stderr.write(`\r${text}\u001b[K`);
}
