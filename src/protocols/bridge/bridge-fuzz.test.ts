import { expect, test } from "vitest";
import { type InMemoryHost, openBridge } from "../../../test/fixtures/bridge-host.ts";
import { settled } from "../../testing/manual-clock.ts";
import { LineSplitter } from "../../wire/line-splitter.ts";
import { METHODS } from "./methods.ts";

const LINES = 50_000;
const SEED = 0x5eed;

/** The same numbers every time, so that a finding can be reproduced. */
function dice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

type Roll = ReturnType<typeof dice>;

const pick = <T>(roll: Roll, choices: readonly T[]): T => choices[roll(choices.length)] as T;

const VALUES: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e308, 2 ** 53, "", "x", "front", "with", "allowed", "policy", "\u2028", "\ud800"],
  ...[
    [],
    {},
    [[]],
    { before: "run_x" },
    { kind: "user" },
    { kind: 5 },
    { text: "t" },
    { text: 5 },
    { text: "t", data: [] },
  ],
  ...["ses_none", "run_none", "call_none.1", "proc_none.1", "ask_none.1", "ses_", "run_../x", "x".repeat(300)],
  ...[JSON.parse('{"__proto__":{"polluted":true}}'), { constructor: 1 }, { toJSON: 1 }],
];

const FIELDS = [
  ...new Set([...METHODS.values()].flatMap((method) => method.fields)),
  "__proto__",
  "constructor",
  "_meta",
];

/** All methods except `shutdown`, which would end the test. */
const NAMES = [...METHODS.keys()].filter((name) => name !== "shutdown");

function request(roll: Roll, session: string, nth: number): string {
  const method = roll(20) === 0 ? pick(roll, ["", "x", "constructor", "__proto__", "toString"]) : pick(roll, NAMES);
  const fields = METHODS.get(method)?.fields ?? FIELDS;
  const params: Record<string, unknown> = {};
  for (let more = roll(5); more > 0; more -= 1)
    params[pick(roll, roll(8) === 0 ? FIELDS : fields)] = pick(roll, VALUES);
  if (roll(2) === 0) params.sessionId = session;
  const id = roll(4) === 0 ? {} : { id: nth };
  return JSON.stringify({ jsonrpc: "2.0", ...id, method, ...(roll(10) === 0 ? {} : { params }) });
}

function damaged(roll: Roll, line: string): string {
  const at = roll(line.length + 1);
  switch (roll(5)) {
    case 0:
      return line.slice(0, at);
    case 1:
      return line.slice(at);
    case 2:
      return `${line.slice(0, at)}${String.fromCharCode(32 + roll(200))}${line.slice(at)}`;
    case 3:
      return JSON.stringify(pick(roll, VALUES));
    default:
      return "[".repeat(roll(5_000));
  }
}

/** Counts answers by id, to detect missing and duplicate ones. */
function answersOf(host: InMemoryHost): Map<number, number> {
  const answers = new Map<number, number>();
  for (const { id, method } of host.lines) {
    if (method === undefined && typeof id === "number") answers.set(id, (answers.get(id) ?? 0) + 1);
  }
  return answers;
}

test(`${LINES} lines, most of them wrong: one answer to each request, and no internal error`, {
  timeout: 60_000,
  meta: { id: "bridge/fuzzed-lines-answered-once" },
}, async () => {
  const { host } = await openBridge({ agent: () => "done" });
  const roll = dice(SEED);
  const session = await host.newSession();
  const asked: number[] = [];
  for (let nth = 1; nth <= LINES; nth += 1) {
    const isWhole = roll(3) > 0;
    // Corruption may leave a valid request with another id, which must not be counted.
    const whole = request(roll, session, isWhole ? nth : -nth);
    if (isWhole && whole.startsWith(`{"jsonrpc":"2.0","id":`)) asked.push(nth);
    host.input.write(`${isWhole ? whole : damaged(roll, whole)}\n`);
    // The stream delivers some lines at a time, as a pipe would.
    if (nth % 500 === 0) await settled();
  }
  expect((await host.ask("ping")).result).toEqual({});
  host.send({ id: "end", method: "shutdown", params: { mode: "cancel" } });
  await host.over;
  const answers = answersOf(host);
  const missing = asked.filter((id) => answers.get(id) !== 1);
  expect(missing).toEqual([]);
  const faults = host.lines.filter((line) => line.error?.code === -32603);
  expect(faults).toEqual([]);
  expect(host.notices.filter((text) => text.includes("inside Belay"))).toEqual([]);
  expect(Reflect.get({}, "polluted")).toBeUndefined();
});

test(`${LINES} ways to split lines into chunks give the same lines`, () => {
  const roll = dice(SEED);
  const wrong: object[] = [];
  const texts = ["", "a", "höher", "🧗🧗", '{"a":"\u2028"}', "x".repeat(40), "\r"];
  for (let nth = 0; nth < LINES; nth += 1) {
    const lines = Array.from({ length: 1 + roll(4) }, () => pick(roll, texts));
    const bytes = Buffer.from(`${lines.join("\n")}\n`);
    const heard: string[] = [];
    const splitter = new LineSplitter(48, {
      line: (line) => heard.push(line.toString()),
      tooLong: () => heard.push("!"),
    });
    for (let from = 0; from < bytes.length; ) {
      const to = from + 1 + roll(7);
      splitter.push(bytes.subarray(from, to));
      from = to;
    }
    splitter.end();
    if (heard.join("\n") !== lines.join("\n")) wrong.push({ lines, heard });
  }
  expect(wrong).toEqual([]);
});

test("a line of exactly the limit is handled, one byte more is not", () => {
  const heard: string[] = [];
  const splitter = new LineSplitter(4, {
    line: (line) => heard.push(line.toString()),
    tooLong: () => heard.push("long"),
  });
  for (const piece of ["abcd\nabc", "de", "fgh\nab\n"]) splitter.push(Buffer.from(piece));
  expect(heard).toEqual(["abcd", "long", "ab"]);
});
