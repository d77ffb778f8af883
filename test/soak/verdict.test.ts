import { describe, expect, test } from "vitest";
import { type Level, leaksBetween, OBJECTS_SLACK } from "./level.ts";
import type { Soaked } from "./soak.ts";
import { HEAP_NOISE_BYTES, verdictOf } from "./verdict.ts";

interface Given {
  readonly open?: Readonly<Record<string, number>>;
  readonly zombies?: number;
  readonly descendants?: number;
  readonly resources?: Readonly<Record<string, number>>;
  readonly objects?: Readonly<Record<string, number>>;
  readonly gauges?: Readonly<Record<string, number>>;
  readonly sessions?: number;
  readonly heapBytes?: number;
}

function level(given: Given = {}): Level {
  const { open = { socket: 3 }, zombies = 0, descendants = 1, resources = { Timeout: 2 } } = given;
  const { objects = { Feed: 1 }, gauges = { belay_runs_live: 0 }, sessions = 0, heapBytes = 1_000 } = given;
  const below = Array.from({ length: descendants }, (_, pid) => ({ pid, command: "sh" }));
  return {
    outside: { ...{ rssBytes: 1, descriptors: 3, threads: 4, zombies, open }, descendants: below },
    memory: { heapBytes, externalBytes: 0, resources },
    ...{ objects, gauges, sessions },
  };
}

const soaked = (given: Partial<Soaked> = {}): Soaked => ({
  tally: { runs: 100, cancels: 1, processes: 1, sessions: 1, faults: 1, refused: 0, wrong: [] },
  ...{ events: 1, leaks: [], first: level(), second: level(), runsBetween: 50, survivors: [] },
  ...{ rss: [], heap: [], descriptors: [], ...given },
});

/** Over ten minutes, growing by so much an hour. */
const growing = (perHour: number) =>
  Array.from({ length: 120 }, (_, at) => ({ atMs: at * 5_000, value: 1e8 + (at * 5_000 * perHour) / 3_600_000 }));

describe("a server at rest", () => {
  test("that holds what it held before holds nothing too much", () => {
    expect(leaksBetween(level(), level(), 100)).toEqual([]);
  });

  test("may hold less than before", () => {
    expect(leaksBetween(level({ open: { socket: 9 }, descendants: 3 }), level(), 100)).toEqual([]);
  });

  test.each<[string, Given]>([
    ["a descriptor more", { open: { socket: 4 } }],
    ["a descriptor of another kind, as many as before", { open: { socket: 2, pipe: 1 } }],
    ["a process more", { descendants: 2 }],
    ["somebody whose end nobody has noted", { zombies: 1 }],
    ["a timer more", { resources: { Timeout: 3 } }],
    ["a handle of a new kind", { resources: { Timeout: 2, PipeWrap: 1 } }],
    ["a live run", { gauges: { belay_runs_live: 1 } }],
    ["an open session", { sessions: 1 }],
    ["more objects of a class than come and go", { objects: { Feed: 2 + OBJECTS_SLACK } }],
  ])("G33: with %s is found out", (_, given) => {
    expect(leaksBetween(level(), level(given), 100)).toHaveLength(1);
  });

  test("may have a few objects more than before, as long as they do not grow with the runs", () => {
    expect(leaksBetween(level(), level({ objects: { Feed: 5 } }), 100)).toEqual([]);
    expect(leaksBetween(level(), level({ objects: { Feed: 1_001 } }), 1_000)).toHaveLength(1);
  });
});

describe("the verdict", () => {
  test("of a soak in which nothing is left is that it holds", () => {
    expect(verdictOf(soaked())).toMatchObject({ holds: true, findings: [], figures: { leaks: 0 } });
  });

  test("counts leaks, and processes that outlived the server", () => {
    const leaks = [{ what: "open socket", before: 3, after: 7 }];
    const { holds, figures } = verdictOf(soaked({ leaks, survivors: ["sleep 9"] }));
    expect(holds).toBe(false);
    expect(figures).toMatchObject({ leaks: 5 });
  });

  test("is no if a deed went wrong, whatever memory says", () => {
    const tally = { ...soaked().tally, wrong: ["a run without an outcome"] };
    expect(verdictOf(soaked({ tally }))).toMatchObject({ holds: false, findings: ["a run without an outcome"] });
  });

  test("is no if memory is shown to grow faster than it may", () => {
    expect(verdictOf(soaked({ rss: growing(3e6) })).findings).toEqual([
      "RSS grows by 3 MB an hour, and by 3 at least; 1 is the limit",
    ]);
    expect(verdictOf(soaked({ rss: growing(0), heap: growing(3e6) })).holds).toBe(false);
    expect(verdictOf(soaked({ rss: growing(0.5e6), heap: growing(0.5e6) })).holds).toBe(true);
  });

  test("is no if a fixed amount of work leaves more on the heap than it may", () => {
    const second = level({ heapBytes: 1_000 + 2 * HEAP_NOISE_BYTES });
    expect(verdictOf(soaked({ second })).findings).toHaveLength(1);
  });
});
