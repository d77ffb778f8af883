import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { failureMap } from "../failures/failure-map.ts";
import { filesByTestId } from "../failures/test-ids.ts";
import { ROOT, sources } from "../fixtures/repository.ts";
import { shortcomings } from "./demand.ts";
import { decode, type Figure, type Result, readFigures } from "./figure.ts";
import { PAGE, render } from "./page.ts";
import type { Suite } from "./published-suite.ts";
import { commandWith, lastLine } from "./record.ts";
import { AWAITED, SUITES, suiteNamed, TESTER_SUITES } from "./suite-words.ts";

const ALL = [...SUITES, ...TESTER_SUITES];

const machine = { cores: 2, cpu: "A | B", memoryGB: 8, kernel: "linux 6", node: "24.0.0", sqlite: "3.0.0" };

const figure = (result: Result, given: Partial<Figure> = {}): Figure => ({
  ...{ command: "npm run x -- --json", result, exitCode: 0, startedAt: "2026-11-15T16:40:11.000Z", minutes: 1.5 },
  ...{ commit: "abc123", machine, ...given },
});

function suite(name: string): Suite {
  const found = suiteNamed(name);
  if (found === undefined) throw new Error(`no suite ${name}`);
  return found;
}

const GOOD: Readonly<Record<string, Figure>> = {
  sim: figure({ suite: "sim", distinct: 1_000_000, schedules: 1_100_000, violations: 0, seed: 1 }),
  exhaustive: figure({ suite: "exhaustive", scopes: 9, interleavings: 99, violations: 0 }),
  faults: figure({ suite: "faults", stories: 40, injections: 9_000, violations: 0, seed: 1 }),
  power: figure({ suite: "power", cuts: 20_000, acked: 5, lost: 0, torn: 0, seed: 1 }),
  crash: figure({
    ...{ suite: "crash", kills: 3_000, acked: 9, lost: 0, withoutOutcome: 0, twoOutcomes: 0 },
    ...{ repeatedCalls: 0, stuck: 0, violations: 0, processesLeft: 0, seed: 1 },
  }),
  trees: figure({ suite: "trees", trees: 1_000, survivors: 0 }),
  "trees-parent-kill": figure({ suite: "trees", trees: 500, survivors: 0 }),
  soak: figure({ suite: "soak", minutes: 60, runs: 9, faults: 9, leaks: 0, zombies: 0, wrong: 0, seed: 1 }),
  steady: figure({ suite: "steady", minutes: 60, runs: 9, cancels: 1, wrong: 0, grown: [], seed: 1 }),
  stopping: figure({ suite: "stopping", ours: { browserStopP99Ms: 40, noSocketStopP99Ms: 40 }, missed: [] }),
  crowd: figure({
    suite: "crowd",
    ours: { crowdRuns: 120, crowdRunsCompleted: 120, crowdRunsCancelled: 5 },
    missed: [],
  }),
  bugs: figure({ suite: "bugs", known: 167, found: 167, missed: [] }),
  "faults-mistakes": figure({ suite: "fault-mistakes", known: 5, found: 5, missed: [] }),
  "power-mistakes": figure({ suite: "power", mistakes: 5, missed: [] }),
  "power-normal": figure({ suite: "power", cuts: 20, lost: 7 }, { exitCode: 1 }),
  "power-lying": figure({ suite: "power", cuts: 20, lost: 7 }, { exitCode: 1 }),
  "soak-mistakes": figure({ suite: "soak", mistakes: 4, missed: [] }),
  "mutate-core": figure({ suite: "mutate", score: 95, mutants: 20 }),
  "mutate-engine": figure({ suite: "mutate", score: 95, mutants: 20 }),
  "mutate-store": figure({ suite: "mutate", score: 92, mutants: 20 }),
  "mutate-process": figure({ suite: "mutate", score: 90, mutants: 20 }),
  failures: figure({ suite: "failures", entries: 141, mapped: 120, doesNotApply: 21, findings: 0 }),
};

describe("the page of figures", () => {
  test("is what the figures say", () => {
    const text = render(readFigures(), failureMap(), filesByTestId(sources()));
    expect(readFileSync(join(ROOT, PAGE), "utf8")).toBe(text);
  });

  test.each(ALL.map((one) => [one.name, one] as const))(
    "has a figure of %s that holds, or waits for it",
    (name, one) => {
      const kept = readFigures().get(name);
      expect(kept === undefined).toBe(AWAITED.has(name));
      expect(kept === undefined ? [] : shortcomings(one, kept)).toEqual([]);
    },
  );

  test("has no figure that is no suite's", () => {
    expect([...readFigures().keys()].filter((name) => suiteNamed(name) === undefined)).toEqual([]);
  });

  test("tells of every suite, also of one without a figure, and of every entry of the map", () => {
    const text = render(new Map(), failureMap());
    for (const { title } of ALL) expect(text).toContain(`### ${title}\n`);
    for (const { id } of failureMap()) expect(text).toContain(`\n| ${id} | `);
    expect(text.match(/Not recorded yet\. The command: `npm run /g)).toHaveLength(ALL.length);
  });

  test("links the id of a test to its file", () => {
    const row = { id: "A1", failure: "it breaks", promise: "it does not", tests: ["G1/first-test", "G1/second-test"] };
    const text = render(new Map(), [row], new Map([["G1/first-test", "src/a.test.ts"]]));
    expect(text).toContain("| [G1/first-test](../src/a.test.ts)<br>G1/second-test |");
  });

  test("shows numbers as the figure has them, with command, day, commit, seed and machine", () => {
    const text = render(new Map([["crash", suiteFigure("crash", { acked: 12_345 })]]), []);
    expect(text).toContain("| acknowledged | 12,345 |");
    expect(text).toContain("`npm run x -- --json`");
    expect(text).toContain("2026-11-15 16:40 UTC, 1.5 min, commit abc123, seed 1, [figure](figures/crash.json)");
    expect(text).toContain("- 2 cores (A | B), 8 GB, linux 6, Node 24.0.0, SQLite 3.0.0: crash");
  });

  test("tells apart what the figure tells apart, and names what is known to go wrong", () => {
    const leaky = { trees: 9, survivors: 0, documentedLeaks: { hopper: "it is faster" }, cancelToDeadP50Ms: 7.5 };
    const mechanisms = { good: { ...leaky, documentedLeaks: {} }, leaky };
    const text = render(new Map([["trees", suiteFigure("trees", { mechanism: "good", mechanisms })]]), []);
    expect(text).toContain("| held by | trees | survivors | known to survive | median, ms | 99 %, ms |\n");
    expect(text).toContain("| good | 9 | 0 | none | 7.5 | undefined |\n| leaky | 9 | 0 | hopper | 7.5 | undefined |\n");
    expect(text).toContain("1,000 trees, held by good, 0 survivors");
  });

  test("says of nothing found how much that is worth, and says it of nothing else", () => {
    const rule = "with 95 % confidence less than one kill in 1,000 shows a fault";
    expect(render(new Map([["crash", suiteFigure("crash")]]), [])).toContain(rule);
    expect(render(new Map([["crash", suiteFigure("crash", { lost: 1 }, 1)]]), [])).not.toContain(
      "with 95 % confidence less",
    );
    expect(render(new Map([["soak", suiteFigure("soak")]]), [])).not.toContain("with 95 % confidence less");
  });

  test("says plainly that something does not hold, and that what must fail has failed", () => {
    expect(render(new Map([["crash", suiteFigure("crash", { lost: 1 }, 1)]]), [])).toContain("**does not hold**");
    expect(render(new Map([["power-normal", suiteFigure("power-normal")]]), [])).toContain("fails, as it must");
    expect(render(new Map([["power-normal", suiteFigure("power-normal", {}, 0)]]), [])).toContain("**does not fail");
  });
});

describe("a figure for publication", () => {
  test.each(ALL.map((one) => [one.name, one] as const))("of %s is taken if it is good", (name, one) => {
    expect(shortcomings(one, suiteFigure(name))).toEqual([]);
  });

  test.each<[string, string, Result, number?]>([
    ["sim", "too few distinct schedules", { distinct: 999_999 }],
    ["sim", "a violation", { violations: 1 }],
    ["sim", "a count that is missing", { violations: undefined }],
    ["sim", "an exit that says that it does not hold", {}, 1],
    ["exhaustive", "nothing searched", { interleavings: 0 }],
    ["faults", "a violation", { violations: 2 }],
    ["power", "too few cuts", { cuts: 19_999 }],
    ["power", "an acknowledged write that is lost", { lost: 1 }],
    ["power", "nothing acknowledged that could be lost", { acked: 0 }],
    ["crash", "too few kills", { kills: 2_999 }],
    ["crash", "a repeated call", { repeatedCalls: 1 }],
    ["crash", "a violation of another kind", { violations: 1 }],
    ["crash", "a process that is left", { processesLeft: 1 }],
    ["trees", "a survivor", { survivors: 1 }],
    ["trees", "too few trees", { trees: 999 }],
    ["trees-parent-kill", "a survivor", { survivors: 1 }],
    ["soak", "a leak", { leaks: 1 }],
    ["soak", "too short a time", { minutes: 9 }],
    ["steady", "something that has grown", { grown: ["storeMB"] }],
    ["steady", "too short a time", { minutes: 4 }],
    ["stopping", "a goal that was missed", { missed: ["browserStopP99Ms is 120; the goal is at most 100."] }],
    [
      "crowd",
      "a run that has not completed",
      { ours: { crowdRuns: 120, crowdRunsCompleted: 119, crowdRunsCancelled: 5 } },
    ],
    [
      "crowd",
      "a cancel that was not carried out",
      { ours: { crowdRuns: 120, crowdRunsCompleted: 120, crowdRunsCancelled: 4 } },
    ],
    ["bugs", "a mistake that was missed", { found: 166, missed: ["x"] }],
    ["bugs", "no mistake to be found", { known: 0, found: 0 }],
    ["faults-mistakes", "a mistake that was missed", { missed: ["x"] }],
    ["power-mistakes", "a mistake that was missed", { missed: ["x"] }],
    ["soak-mistakes", "no list of what was missed", { missed: undefined }],
    ["power-normal", "an exit that says that it holds", {}, 0],
    ["power-normal", "nothing lost", { lost: 0 }],
    ["power-lying", "nothing lost", { lost: 0 }],
    ["mutate-core", "too low a score", { score: 94.9 }],
    ["mutate-engine", "too low a score", { score: 94.9 }],
    ["mutate-store", "too low a score", { score: 91.9 }],
    ["mutate-process", "too low a score", { score: 89.9 }],
    ["mutate-process", "nothing tried", { mutants: 0 }],
    ["failures", "an entry without its test", { findings: 1 }],
    ["failures", "too few entries", { entries: 140 }],
  ])("of %s is refused with %s", (name, _, worse, exitCode) => {
    expect(shortcomings(suite(name), suiteFigure(name, worse, exitCode))).not.toEqual([]);
  });

  test("is refused if it was made with changes that are in no commit", () => {
    expect(shortcomings(suite("trees"), { ...suiteFigure("trees"), commit: "abc123+changes" })).toHaveLength(1);
  });

  test("is not read if it is not whole", () => {
    const whole = JSON.stringify(figure({ suite: "sim" }));
    expect(decode("sim.json", whole).machine).toEqual(machine);
    for (const key of ["command", "result", "exitCode", "startedAt", "minutes", "commit", "machine"]) {
      const { [key]: _, ...rest } = JSON.parse(whole) as Record<string, unknown>;
      expect(() => decode("sim.json", JSON.stringify(rest))).toThrow("sim.json is not a figure");
    }
  });

  test("is made of the last line of the output, and of nothing else", () => {
    expect(lastLine('progress\n{"suite":"sim","seed":1}\n')).toEqual({ suite: "sim", seed: 1 });
    expect(() => lastLine("it broke\n")).toThrow("has ended without a result");
    expect(() => lastLine('{"suite":"sim"}\nand then it broke\n')).toThrow("has ended without a result");
    expect(() => lastLine('{"other":1}\n')).toThrow("has ended without a result");
  });

  test("names an option once, though it was given again", () => {
    const own = ["soak", "--minutes", "60", "--mistakes", "--seed", "1"] as const;
    expect(commandWith(own, ["--minutes", "15"])).toEqual(["soak", "--mistakes", "--seed", "1", "--minutes", "15"]);
    expect(commandWith(own, [])).toEqual(own);
  });
});

/** A good one, with something else in its result and another end. */
function suiteFigure(name: string, other: Result = {}, exitCode?: number): Figure {
  const good = GOOD[name];
  if (good === undefined) throw new Error(`no good figure of ${name}`);
  return { ...good, result: { ...good.result, ...other }, exitCode: exitCode ?? good.exitCode };
}
