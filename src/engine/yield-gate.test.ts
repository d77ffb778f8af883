// Every promise that Belay gives to an agent or a tool, awaited in a loop. The tables are typed by the interfaces: a
// new method without a case does not compile.
import { describe, expect, test } from "vitest";
import { openTestBelay } from "../../test/fixtures/belay.ts";
import { LOOP_TURN_MS, LOOP_TURN_PROMISES_MAX, STOPPED_PAUSE_MS, STOPPED_PROMISES_MAX } from "../core/limits.ts";
import type { LiveCall, Turn } from "../ports/agent.ts";
import type { Clock } from "../ports/clock.ts";
import type {
  CallProcesses,
  Child,
  OutputFile,
  ProcessHandle,
  ProcessTree,
  Spawner,
  SpawnRequest,
  TurnProcesses,
} from "../ports/spawner.ts";
import { systemClock } from "../system/system-clock.ts";
import { manualClock } from "../testing/manual-clock.ts";
import { scriptedSpawner } from "../testing/scripted-spawner.ts";
import { type GateOwner, LoopBudget, YieldGate } from "./yield-gate.ts";

/** The methods whose promise is awaited. */
type Awaited<T> = {
  [K in keyof T]-?: NonNullable<T[K]> extends (...given: never) => infer R
    ? R extends Promise<unknown> | AsyncGenerator
      ? K
      : never
    : never;
}[keyof T];
type Cases<T> = { readonly [K in Awaited<T>]: (of: T) => Promise<unknown> };

const SLEEP = ["sleep", "60"] as const;

const ofProcesses = {
  start: (processes) => processes.start(SLEEP),
  get: (processes) => processes.get("proc_none"),
  list: (processes) => processes.list(),
} satisfies Cases<TurnProcesses>;

const ofHandle = {
  wait: (handle) => handle.wait(),
  cancel: (handle) => handle.cancel(),
  write: (handle) => handle.write("text"),
  resize: (handle) => handle.resize({ columns: 80, rows: 25 }),
  output: (handle) => handle.output(),
  read: (handle) => handle.read(),
  follow: (handle) => handle.follow({ signal: AbortSignal.abort() }).next(),
} satisfies Cases<ProcessHandle>;

const ofTree = {
  members: (tree) => tree.members(),
  endOthers: (tree) => tree.endOthers([], { graceMs: 0, limitMs: 0 }),
} satisfies Cases<ProcessTree>;

const ofFile = { read: (file) => file.read() } satisfies Cases<OutputFile>;

const ofTurn = {
  transcript: (turn) => turn.transcript(),
  call: (turn) => turn.call("again", {}, () => "done"),
  takeSteers: (turn) => turn.takeSteers(),
  cancel: (turn) => turn.cancel("call_none"),
  ask: (turn) => turn.ask({ text: "Which?" }),
  compact: (turn) => turn.compact("All of it."),
  stop: (turn) => turn.stop("It goes round in circles."),
} satisfies Cases<Turn>;

const ofCall = {
  approve: async (call) => call.approve?.({ name: "it", input: null }),
  ask: (call) => call.ask({ text: "Which?" }),
} satisfies Cases<LiveCall>;

const ofCallProcesses = {
  ...ofProcesses,
  run: (processes) => processes.run(SLEEP),
} satisfies Cases<CallProcesses>;

type Step<T> = (of: T) => Promise<unknown>;
/** Prepares a method, and returns the function that is awaited repeatedly. */
type Prepare<T> = (of: T) => Promise<() => Promise<unknown>>;

const cases = <T, U>(area: string, table: Readonly<Record<string, Step<U>>>, of: (of: T) => Promise<U> | U) =>
  Object.entries(table).map(([name, step]): readonly [string, Prepare<T>] => [
    `${area}${name}()`,
    async (holder) => {
      const given = await of(holder);
      return () => step(given);
    },
  ]);

const started = ({ processes }: { readonly processes: TurnProcesses }): Promise<ProcessHandle> =>
  processes.start(SLEEP, { feedback: "silent" });

async function ended(holder: { readonly processes: TurnProcesses }): Promise<ProcessHandle> {
  const handle = await started(holder);
  await handle.cancel();
  return handle;
}

async function file(holder: { readonly processes: TurnProcesses }): Promise<OutputFile> {
  const output = await (await started(holder)).output();
  if (output === undefined) throw new Error("It has no output.");
  return output;
}

async function treeOf(holder: { readonly processes: TurnProcesses }): Promise<ProcessTree> {
  const { tree } = await started(holder);
  if (tree === undefined) throw new Error("It has no tree.");
  return tree;
}

/** Its processes have a tree that can be listed. */
function spawnerWithTrees(): Spawner {
  const spawner = scriptedSpawner({ clock: systemClock });
  const tree: ProcessTree = { members: async () => [], endOthers: async () => ({ ended: [], left: [], sure: true }) };
  const spawn = async (request: SpawnRequest): Promise<Child> => Object.assign(await spawner.spawn(request), { tree });
  const { tier, mechanism } = spawner;
  return { tier, mechanism, spawn, output: (id) => spawner.output(id), close: () => spawner.close() };
}

/** Invalid arguments, refused before the engine is called. */
const wrong = {
  call: (turn) => turn.call("again", {}, "no function" as never),
  ask: (turn) => turn.ask({ text: "" }),
  compact: (turn) => turn.compact(""),
  cancel: (turn) => turn.cancel("run_none"),
  stop: (turn) => turn.stop(7 as never),
} satisfies Partial<Cases<Turn>>;

const turnCases: readonly (readonly [string, Prepare<Turn>])[] = [
  ...cases("turn.", ofTurn, (turn: Turn) => turn),
  ...cases("a wrong turn.", wrong, (turn: Turn) => turn),
  ...cases("turn.processes.", ofProcesses, ({ processes }: Turn) => processes),
  ...cases("a turn's handle.", ofHandle, (turn: Turn) => started(turn)),
  ...cases("a turn's handle of what has ended.", ofHandle, (turn: Turn) => ended(turn)),
  ...cases("a turn's output.", ofFile, (turn: Turn) => file(turn)),
  ...cases("a turn's tree.", ofTree, (turn: Turn) => treeOf(turn)),
];
const callCases: readonly (readonly [string, Prepare<LiveCall>])[] = [
  ...cases("call.", ofCall, (call: LiveCall) => call),
  ...cases("call.processes.", ofCallProcesses, ({ processes }: LiveCall) => processes),
  ...cases("a call's handle.", ofHandle, (call: LiveCall) => started(call)),
  ...cases("a call's handle of what has ended.", ofHandle, (call: LiveCall) => ended(call)),
  ...cases("a call's output.", ofFile, (call: LiveCall) => file(call)),
  ...cases("a call's tree.", ofTree, (call: LiveCall) => treeOf(call)),
];

/** Without a gate the loop ends here, and the test fails instead of hanging. */
const ROUNDS_MAX = 20_000;

class Loop {
  rounds = 0;
  over = false;

  async run(step: () => Promise<unknown>): Promise<void> {
    for (; !this.over && this.rounds < ROUNDS_MAX; this.rounds += 1) {
      try {
        await step();
      } catch {
        // Again.
      }
    }
  }
}

const timer = (): Promise<void> => new Promise((resolve) => systemClock.after(0, resolve));

describe.concurrent("G12: code that retries after its stop delays no timer and no other session, and is named", () => {
  /** Cancels a run whose turn or tool retries endlessly, and returns its outcome. */
  const cancelled = async (loop: Loop, act: (turn: Turn) => Promise<undefined>) => {
    const spawner = spawnerWithTrees();
    const { belay, began } = await openTestBelay({ loop: act }, { processes: { spawner }, graceMs: 20 });
    const session = await belay.createSession();
    const other = await belay.createSession();
    const run = session.prompt("loop");
    await began("loop");
    // The data for its loop exists when its session is explained next.
    while ((await session.explain()).live?.questions.length !== 1) await timer();
    expect(await run.cancel()).toMatchObject({ kind: "stopping" });
    await timer();
    expect(await other.prompt("hello").outcome).toEqual({ kind: "completed" });
    const outcome = await run.outcome;
    loop.over = true;
    return outcome;
  };

  test.each(turnCases)("%s", async (_, prepare) => {
    const loop = new Loop();
    const outcome = await cancelled(loop, async (turn) => {
      const step = await prepare(turn);
      await turn.ask({ text: "ready" }).catch(() => {});
      await loop.run(step);
      return undefined;
    });
    expect(outcome).toMatchObject({ kind: "cancelled", abandoned: ["turn"] });
    expect(loop.rounds).toBeLessThan(ROUNDS_MAX);
  });

  test.each(callCases)("%s", async (_, prepare) => {
    const loop = new Loop();
    const outcome = await cancelled(loop, async (turn) => {
      await turn.call("tool", {}, async (call) => {
        const step = await prepare(call);
        await call.ask({ text: "ready" }).catch(() => {});
        await loop.run(step);
      });
      return undefined;
    });
    // On a busy machine the turn may not learn in time that its call was abandoned, and is abandoned as well.
    expect(outcome).toMatchObject({ kind: "cancelled", abandoned: expect.arrayContaining(["tool"]) });
    expect(loop.rounds).toBeLessThan(ROUNDS_MAX);
  });
});

describe("G12: an agent that polls without a pause does not starve timers", () => {
  test.each(turnCases)("%s", async (_, prepare) => {
    const spawner = spawnerWithTrees();
    const loop = new Loop();
    const poll = async (turn: Turn): Promise<string> => {
      await loop.run(await prepare(turn));
      return "done";
    };
    const { belay, began } = await openTestBelay({ poll }, { processes: { spawner } });
    const run = (await belay.createSession()).prompt("poll");
    await began("poll");
    await timer();
    loop.over = true;
    expect(loop.rounds).toBeLessThan(ROUNDS_MAX);
    await run.cancel();
  });

  test("an agent that requests turn after turn", async () => {
    let turns = 0;
    const agent = () => {
      turns += 1;
      return { next: turns < ROUNDS_MAX ? ("turn" as const) : ("end" as const) };
    };
    const { belay } = await openTestBelay({}, { agent });
    const run = (await belay.createSession()).prompt("again");
    await timer();
    expect(await run.cancel()).toMatchObject({ kind: "stopping" });
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
    expect(turns).toBeLessThan(ROUNDS_MAX);
  });
});

describe("the gate", () => {
  const STOPPED: GateOwner = {
    ...{ sessionId: "ses_1", runId: "run_1", liveAt: -1, namedAt: 0 },
    name: "turn",
    scope: { reason: { kind: "user" } },
  };
  const turns = (): { clock: Clock; turn(): void; asked(): number } => {
    const calls: (() => void)[] = [];
    const turn = (): void => {
      for (const call of calls.splice(0)) call();
    };
    const { now, elapsed, after } = manualClock();
    return {
      clock: { now, elapsed, after, immediate: (call) => void calls.push(call) },
      turn,
      asked: () => calls.length,
    };
  };

  test("lets a number of promises through, and the others after a turn of the event loop", () => {
    const { turn, asked, ...given } = turns();
    const clock = { ...given.clock, elapsed: () => 0 };
    const gate = new YieldGate(new LoopBudget(clock));
    let passed = 0;
    for (let count = 0; count < LOOP_TURN_PROMISES_MAX + 2; count += 1) gate.pass(() => (passed += 1));
    expect(passed).toBe(LOOP_TURN_PROMISES_MAX);
    expect(asked()).toBe(1);
    turn();
    expect(passed).toBe(LOOP_TURN_PROMISES_MAX + 2);
    gate.pass(() => (passed += 1));
    expect(passed).toBe(LOOP_TURN_PROMISES_MAX + 3);
  });

  test("lets promises through for a limited time", () => {
    let elapsed = 0;
    const { clock, turn } = turns();
    const gate = new YieldGate(new LoopBudget({ ...clock, elapsed: () => elapsed }));
    const passed: string[] = [];
    gate.pass(() => passed.push("at once"));
    elapsed = LOOP_TURN_MS;
    gate.pass(() => passed.push("later"));
    expect(passed).toEqual(["at once"]);
    turn();
    expect(passed).toEqual(["at once", "later"]);
  });

  test("delays stopped work by a turn of the event loop, later by a pause that keeps no program alive", () => {
    const { turn, ...given } = turns();
    const clock = manualClock();
    const gate = new YieldGate(
      new LoopBudget({ ...given.clock, elapsed: () => 0, after: (...timer) => clock.after(...timer) }),
      STOPPED,
    );
    let passed = 0;
    for (let count = 1; count <= STOPPED_PROMISES_MAX; count += 1) {
      gate.pass(() => (passed += 1));
      expect(passed).toBe(count - 1);
      turn();
      expect(passed).toBe(count);
    }
    gate.pass(() => (passed += 1));
    turn();
    expect(passed).toBe(STOPPED_PROMISES_MAX);
    expect(clock.pending).toEqual([{ inMs: STOPPED_PAUSE_MS, idle: true }]);
    clock.tick(STOPPED_PAUSE_MS);
    expect(passed).toBe(STOPPED_PROMISES_MAX + 1);
  });

  test("takes a real turn of the event loop if the clock of the host has none", async () => {
    const { now, after } = manualClock();
    const gate = new YieldGate(new LoopBudget({ now, elapsed: () => 0, after }), STOPPED);
    let passed = false;
    gate.pass(() => {
      passed = true;
    });
    await Promise.resolve();
    expect(passed).toBe(false);
    // Queued behind the gate's own: a timer may be due before both.
    await new Promise<void>((resolve) => void setImmediate(resolve));
    expect(passed).toBe(true);
  });

  test("rejects if a method throws in its tick", async () => {
    const gate = new YieldGate(new LoopBudget(manualClock()));
    const refused = gate.settle(() => {
      throw new Error("invalid");
    });
    await expect(refused).rejects.toThrow("invalid");
  });
});
