// Valid inputs and their results, and the errors of invalid ones.
import { describe, expect, test } from "vitest";
import { askedOf, checkApproval, checkAsk } from "../engine/work/validate-question.ts";
import {
  checkCallJson,
  checkDelivery,
  checkItem,
  checkKey,
  checkLimit,
  checkMs,
  checkNote,
  checkPrompt,
  checkReason,
} from "./input.ts";
import {
  CALL_BYTES_MAX,
  ITEM_BYTES_MAX,
  JSON_DEPTH_MAX,
  KEY_CHARS_MAX,
  NOTE_CHARS_MAX,
  PAGE_ROWS_MAX,
  PROMPT_BYTES_MAX,
  QUESTION_BYTES_MAX,
} from "./limits.ts";
import { misfit } from "./model/question.ts";

type Check = (given: never) => unknown;

/** Passes input that TypeScript would not accept. */
const take = (check: Check, given: unknown): unknown => check(given as never);

const json = (given: unknown): unknown => checkCallJson(given, "It");

const HALF = "\ud83d";
const MENDED = "\ufffd";

/** A list nested this deeply. */
const nested = (levels: number): unknown => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);

const NOT_TEXT = [7, null, ["x"], { text: "x" }, true];
const NO_NUMBERS = ["1", 1n, null, Number.NaN, Number.POSITIVE_INFINITY];

const LONG = "n".repeat(NOTE_CHARS_MAX + 1);
const SHORTENED = `${"n".repeat(NOTE_CHARS_MAX - 8)} … [cut]`;

describe("G3: invalid input is refused, with a message that says what is right", () => {
  const PROMPT = "A prompt is a string, or an object with `text`.";
  const REASON = 'A cancel\'s `reason.kind` is "user" or "policy"; the other kinds are Belay\'s own.';
  const NOTE = `A note is a string of at most ${NOTE_CHARS_MAX} characters.`;
  const KEY = `An idempotency key is a string of 1 to ${KEY_CHARS_MAX} characters.`;
  const OPTIONS = "A question's `options` are strings, and `only` is a boolean.";
  const DEADLINE = `deadlineMs is a whole number of milliseconds from 0 to ${2 ** 31}.`;
  const APPROVAL = "An approval is true, false, or an object with `scope`, `note`, `deadlineMs`.";
  const SCOPE = `An approval's \`scope\` is a text of at most ${NOTE_CHARS_MAX} characters.`;
  const ITEM = "An item of the inbox is an object with `kind` and `text`.";
  const KIND = 'An item\'s `kind` is "reminder" or "result".';
  const MS = "graceMs is a whole number of milliseconds from 0 to 100.";
  const LIMIT = `\`limit\` is a whole number from 1 to ${PAGE_ROWS_MAX}.`;
  const oneOf = (given: string) => `Delivery ${given} is not one of "queue", "steer", "interrupt", "reject".`;
  const ms = (given: unknown): number => checkMs(given, "graceMs", 100);

  const rows: readonly (readonly [what: string, check: Check, given: readonly unknown[], said: string])[] = [
    ["a prompt that is none", checkPrompt, [undefined, null, 7, true, ["x"]], PROMPT],
    ["a prompt without a text", checkPrompt, [{}, { data: 1 }, { text: 7 }], "A prompt's `text` is a string."],
    ["an empty prompt", checkPrompt, ["", " \n\t", { text: " " }], "The prompt is empty."],
    [
      ...(["a prompt without text whose data has nothing in it", checkPrompt] as const),
      [null, {}, [], { attachments: [] }].map((data) => ({ text: " ", data })),
      "The prompt is empty.",
    ],
    ["a prompt with more", checkPrompt, [{ text: "x", role: 1, to: 2 }], "A prompt has no `role`, `to`."],
    ["a delivery", checkDelivery, ["later"], oneOf('"later"')],
    ["a long delivery", checkDelivery, ["x".repeat(50)], oneOf(`"${"x".repeat(40)}"`)],
    ["a delivery that is no word", checkDelivery, [["queue"], {}, null], oneOf("object")],
    ["a key", checkKey, ["", 7, null, HALF, "k".repeat(KEY_CHARS_MAX + 1)], KEY],
    ["a reason", checkReason, [7, null, ["x"]], "A cancel's `reason` is a string or an object with `kind`."],
    ["a reason with more", checkReason, [{ kind: "user", why: "x" }], "A reason has no `why`."],
    ["a reason of Belay's own", checkReason, [{ kind: "shutdown" }, { kind: "timeout" }, {}], REASON],
    ["a policy with a person", checkReason, [{ kind: "policy", note: "x", by: "ann" }], REASON],
    ["a policy without a note", checkReason, [{ kind: "policy" }], NOTE],
    ["a note of a reason", checkReason, [{ kind: "user", note: 7 }], NOTE],
    [
      "a person of a reason",
      checkReason,
      [
        { kind: "user", by: 7 },
        { kind: "user", by: null },
      ],
      NOTE,
    ],
    ["a note", checkNote, [...NOT_TEXT, undefined, "n".repeat(NOTE_CHARS_MAX + 1)], NOTE],
    ["a question that is none", checkAsk, [undefined, "x", null, ["x"]], "A question is an object with `text`."],
    ["a question without a text", checkAsk, [{}, { text: " " }, { text: 7 }], "A question has a `text`."],
    ["a question with more", checkAsk, [{ text: "x", title: "y" }], "A question has no `title`."],
    [
      "options that are no list",
      checkAsk,
      [
        { text: "x", options: "yes" },
        { text: "x", options: null },
      ],
      OPTIONS,
    ],
    ["an option that is no text", checkAsk, [{ text: "x", options: ["yes", 7] }], OPTIONS],
    // biome-ignore lint/suspicious/noSparseArray: that is what is tested
    ["a hole between options", checkAsk, [{ text: "x", options: ["yes", , "no"] }], OPTIONS],
    ["what is only half an only", checkAsk, [{ text: "x", options: ["yes"], only: "yes" }], OPTIONS],
    [
      "an only with nothing to choose",
      checkAsk,
      [
        { text: "x", only: true },
        { text: "x", only: true, options: [] },
      ],
      "A question with `only` needs `options` to choose from.",
    ],
    [
      "a deadline",
      checkAsk,
      [...NO_NUMBERS, -1, 0.5, 2 ** 31 + 1].map((deadlineMs) => ({ text: "x", deadlineMs })),
      DEADLINE,
    ],
    ["an approval that is none", checkApproval, [undefined, "yes", null, 1, ["x"]], APPROVAL],
    ["an approval with more", checkApproval, [{ by: "ann" }], "An approval has no `by`."],
    ["a scope", checkApproval, [{ scope: 7 }, { scope: "" }, { scope: "s".repeat(NOTE_CHARS_MAX + 1) }], SCOPE],
    ["a note of an approval", checkApproval, [{ note: 7 }, { note: null }], "An approval's `note` is a text."],
    ["a deadline of an approval", checkApproval, [...NO_NUMBERS, -1].map((deadlineMs) => ({ deadlineMs })), DEADLINE],
    ["an item that is none", checkItem, [undefined, "x", null, ["x"]], ITEM],
    ["an item of another kind", checkItem, [{ text: "x" }, { kind: "prompt", text: "x" }], KIND],
    ["an item without a text", checkItem, [{ kind: "result" }, { kind: "result", text: " " }], "An item has a `text`."],
    ["an item with more", checkItem, [{ kind: "result", text: "x", to: 1 }], "An item of the inbox has no `to`."],
    ["a duration", ms, [...NO_NUMBERS, undefined, -1, 0.5, 101], MS],
    ["a limit", checkLimit, [...NO_NUMBERS, 0, -1, 1.5, PAGE_ROWS_MAX + 1], LIMIT],
  ];
  test.each(rows)("%s", (_, check, given, said) => {
    for (const one of given) {
      expect(() => take(check, one), String(one)).toThrow(
        expect.objectContaining({ name: "ControlError", code: "invalid", message: said }),
      );
    }
  });
});

describe("G3: input above a limit is refused, and input at the limit is not", () => {
  const bytes = (many: number): string => "x".repeat(many);
  const question = (many: number) => ({ text: bytes(many - JSON.stringify({ kind: "question", text: "" }).length) });
  const item = (many: number) => {
    const kind = "reminder";
    return { kind, text: bytes(many - JSON.stringify({ kind, text: "" }).length) };
  };
  const rows: readonly (readonly [string, Check, (many: number) => unknown, max: number, said: string])[] = [
    ["a prompt", checkPrompt, bytes, PROMPT_BYTES_MAX, "The prompt has 1048577 bytes; the limit is 1048576."],
    [
      ...(["the data of a prompt", checkPrompt] as const),
      // Two quotes around the data, and one byte of text.
      (many: number) => ({ text: "x", data: bytes(many - 3) }),
      ...([PROMPT_BYTES_MAX, "The prompt has 1048577 bytes; the limit is 1048576."] as const),
    ],
    [
      ...(["what a call is given", json] as const),
      (many: number) => bytes(many - 2),
      ...([CALL_BYTES_MAX, "It has 1048577 bytes; the limit is 1048576."] as const),
    ],
    ["a question", checkAsk, question, QUESTION_BYTES_MAX, "A question has at most 65536 bytes."],
    ["an item", checkItem, item, ITEM_BYTES_MAX, "An item has at most 65536 bytes."],
    ["nesting", json, nested, JSON_DEPTH_MAX, "It is nested deeper than 64 levels."],
  ];
  test.each(rows)("%s", (_, check, sized, max, said) => {
    expect(() => take(check, sized(max))).not.toThrow();
    expect(() => take(check, sized(max + 1))).toThrow(expect.objectContaining({ code: "invalid", message: said }));
  });

  test("characters of several bytes count as many", () => {
    expect(() => checkPrompt("é".repeat(PROMPT_BYTES_MAX / 2))).not.toThrow();
    expect(() => checkPrompt("é".repeat(PROMPT_BYTES_MAX / 2 + 1))).toThrow("The prompt has 1048578 bytes");
  });

  test("nesting counts objects, lists and the result of toJSON", () => {
    const levels: readonly ((inner: unknown) => unknown)[] = [
      (inner) => ({ inner }),
      (inner) => [inner],
      (inner) => ({ toJSON: () => inner }),
    ];
    for (const around of levels) {
      let given: unknown = 1;
      for (let level = 0; level < JSON_DEPTH_MAX; level += 1) given = around(given);
      expect(() => json(given)).not.toThrow();
      expect(() => json(around(given))).toThrow("It is nested deeper than 64 levels.");
    }
  });
});

describe("valid input", () => {
  const rows: readonly (readonly [what: string, check: Check, given: unknown, taken: unknown])[] = [
    ["a prompt as a text", checkPrompt, "x", { text: "x" }],
    ["a prompt as an object", checkPrompt, { text: " x " }, { text: " x " }],
    ["a prompt of data alone", checkPrompt, { text: "", data: 0 }, { text: "", data: 0 }],
    ["a prompt with null for data", checkPrompt, { text: "x", data: null }, { text: "x", data: null }],
    ["a prompt with nothing for data", checkPrompt, { text: "x", data: undefined }, { text: "x" }],
    ["no delivery: the queue", checkDelivery, undefined, "queue"],
    ...["queue", "steer", "interrupt", "reject"].map((one) => [one, checkDelivery, one, one] as const),
    ["no key", checkKey, undefined, undefined],
    ["a short key", checkKey, "k", "k"],
    ["the longest key", checkKey, "k".repeat(KEY_CHARS_MAX), "k".repeat(KEY_CHARS_MAX)],
    ["the longest scope", checkApproval, { scope: "s".repeat(NOTE_CHARS_MAX) }, { scope: "s".repeat(NOTE_CHARS_MAX) }],
    ["no reason: somebody", checkReason, undefined, { kind: "user" }],
    ["a reason as a note", checkReason, "enough", { kind: "user", note: "enough" }],
    ["a reason with nothing in it", checkReason, { kind: "user", note: undefined, by: undefined }, { kind: "user" }],
    ["a whole reason", checkReason, { kind: "user", note: "a", by: "b" }, { kind: "user", note: "a", by: "b" }],
    ["a reason that is too long: cut and marked", checkReason, LONG, { kind: "user", note: SHORTENED }],
    [
      "its parts, too",
      checkReason,
      { kind: "user", note: LONG, by: LONG },
      { kind: "user", note: SHORTENED, by: SHORTENED },
    ],
    ["a policy", checkReason, { kind: "policy", note: "dear" }, { kind: "policy", note: "dear" }],
    ["the longest note", checkNote, "n".repeat(NOTE_CHARS_MAX), "n".repeat(NOTE_CHARS_MAX)],
    ["an item", checkItem, { kind: "result", text: "x" }, { kind: "result", text: "x" }],
    [
      "an item with data",
      checkItem,
      { kind: "reminder", text: "x", data: 0 },
      { kind: "reminder", text: "x", data: 0 },
    ],
    ["no limit: a hundred rows", checkLimit, undefined, 100],
    ["the smallest limit", checkLimit, 1, 1],
    ["the largest limit", checkLimit, PAGE_ROWS_MAX, PAGE_ROWS_MAX],
  ];
  test.each(rows)("%s", (_, check, given, taken) => {
    expect(take(check, given)).toStrictEqual(taken);
  });

  test("durations from zero to the longest", () => {
    for (const given of [0, 1, 100]) expect(checkMs(given, "graceMs", 100)).toBe(given);
  });

  test("a question, with its own fields and no others", () => {
    const kind = "question";
    const none = undefined;
    expect(checkAsk({ text: "x" })).toStrictEqual({ about: { kind, text: "x" }, deadlineMs: undefined });
    expect(take(checkAsk, { text: "x", options: none, only: none, data: none, deadlineMs: none })).toStrictEqual({
      ...{ about: { kind, text: "x" }, deadlineMs: undefined },
    });
    expect(checkAsk({ text: "x", options: ["a"], only: false, deadlineMs: 0 })).toStrictEqual({
      ...{ about: { kind, text: "x", options: ["a"] }, deadlineMs: 0 },
    });
    expect(checkAsk({ text: "x", options: ["a"], only: true, data: null, deadlineMs: 2 ** 31 })).toStrictEqual({
      ...{ about: { kind, text: "x", options: ["a"], only: true, data: null }, deadlineMs: 2 ** 31 },
    });
    expect(checkAsk({ text: "x", options: [] }).about).toStrictEqual({ kind, text: "x", options: [] });
  });

  test("lone surrogates are replaced everywhere, so that no later step fails on them", () => {
    const data = { [HALF]: [HALF] };
    const mended = { [MENDED]: [MENDED] };
    expect(checkPrompt(HALF)).toEqual({ text: MENDED });
    expect(checkPrompt({ text: HALF, data })).toEqual({ text: MENDED, data: mended });
    expect(checkItem({ kind: "result", text: HALF, data })).toEqual({ kind: "result", text: MENDED, data: mended });
    expect(checkReason({ kind: "user", note: HALF, by: HALF })).toEqual({ kind: "user", note: MENDED, by: MENDED });
    expect(checkAsk({ text: HALF, data: data as never }).about).toEqual({
      kind: "question",
      text: MENDED,
      data: mended,
    });
  });

  test("an option with a lone surrogate can be chosen in its replaced form", () => {
    const { about } = checkAsk({ text: "x", options: [HALF], only: true });
    expect(misfit(about, { kind: "answered", value: checkCallJson(HALF, "An answer") }, undefined)).toBeUndefined();
  });
});

describe("data is copied as JSON", () => {
  class Point {
    readonly x = 1;
  }
  class Money {
    toJSON(): unknown {
      return { cents: 7 };
    }
  }

  test.each([
    ["texts, numbers, booleans and nothing", ["x", 0, -1.5, true, false, null]],
    ["objects and lists in each other", { a: [{ b: [] }], c: {} }],
    ["a toJSON that is none", { toJSON: "x" }],
    ["a field with an odd name", JSON.parse('{"__proto__": {"x": 1}, "constructor": 1}')],
  ])("%s", (_, given) => {
    expect(json(given)).toStrictEqual(given);
  });

  test.each([
    ["what is not there is left out", { a: undefined, b: 1 }, { b: 1 }],
    ["objects without a prototype get one", Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
    ["dates become texts", { at: new Date(0) }, { at: "1970-01-01T00:00:00.000Z" }],
    ["objects that say what they are as JSON are that", [new Money(), { toJSON: () => 7 }], [{ cents: 7 }, 7]],
  ])("%s", (_, given, copied) => {
    expect(json(given)).toStrictEqual(copied);
  });

  test("later changes of the original do not change the copy", () => {
    const list = [1];
    const given = { list };
    const copy = json(given);
    list.push(2);
    expect(copy).toEqual({ list: [1] });
  });

  test.each([
    ["not a number", [Number.NaN], "It contains NaN, which JSON does not have."],
    ["infinity", { x: Number.NEGATIVE_INFINITY }, "It contains -Infinity, which JSON does not have."],
    ["nothing at all", undefined, "It contains undefined; only JSON can be stored."],
    ["nothing in a list", [undefined], "It contains undefined; only JSON can be stored."],
    // biome-ignore lint/suspicious/noSparseArray: that is what is tested
    ["a hole in a list", [1, , 2], "It contains undefined; only JSON can be stored."],
    ["a function", { f: () => 1 }, "It contains a function; only JSON can be stored."],
    ["a big number", [10n], "It contains a bigint; only JSON can be stored."],
    ["a symbol", Symbol("x"), "It contains a symbol; only JSON can be stored."],
    ["an object of a class", [new Point()], "It contains an object that is not plain data."],
    ["a map", new Map(), "It contains an object that is not plain data."],
    ["a toJSON of nothing", { toJSON: () => undefined }, "It contains undefined; only JSON can be stored."],
  ])("%s is refused", (_, given, said) => {
    expect(() => json(given)).toThrow(expect.objectContaining({ code: "invalid", message: said }));
  });
});

test("the caller of ask() receives the ending; that of an approval is its answer", () => {
  const expired = { kind: "expired", limitMs: 1 } as const;
  const answered = { kind: "answered", value: 7, by: "ann" } as const;
  expect(askedOf(expired)).toBe(expired);
  expect(askedOf(answered)).toBe(answered);
  expect(askedOf({ kind: "allowed", by: "ann" })).toEqual({ kind: "answered", value: "allowed" });
  expect(askedOf({ kind: "denied" })).toEqual({ kind: "answered", value: "denied" });
});
