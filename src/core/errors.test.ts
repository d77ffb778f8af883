// Failures, as a caller receives them.
import { expect, test } from "vitest";
import { Bug, unreachable } from "./bug.ts";
import { ADVICE, ControlError, messageOf, toControlError } from "./errors.ts";
import { ERROR_DATA_CHARS_MAX, ERROR_DEPTH_MAX } from "./limits.ts";

test("an error carries its code, its advice and its cause", () => {
  const cause = new Error("disk");
  const error = new ControlError("store_full", "No space is left.", { cause });
  expect(error).toMatchObject({ name: "ControlError", code: "store_full", message: "No space is left.", cause });
  expect(error.retryable).toBe(true);
  expect(error.hint).toBe(ADVICE.store_full.hint);
  expect(error).toBeInstanceOf(Error);
});

test("a specific hint replaces the general one", () => {
  expect(new ControlError("invalid", "Bad.", { hint: "Send text." }).hint).toBe("Send text.");
});

test("a ControlError is returned unchanged", () => {
  const error = new ControlError("busy", "Busy.");
  expect(toControlError(error)).toBe(error);
});

test("G35: any other error is reported as `internal`, with its details only in the log", () => {
  for (const thrown of [new Error("password=hunter2"), "text", undefined, new Bug("impossible")]) {
    const error = toControlError(thrown);
    expect(error).toMatchObject({ code: "internal", retryable: false, cause: thrown });
    expect(error.message).toBe("Something went wrong inside Belay.");
  }
});

test.each([
  ["an error", new Error("The disk is full."), "The disk is full."],
  ["an error without a message", new Error(), "It failed without a message."],
  ["a text", "no", "no"],
  ["an empty text", "", "It failed without a message."],
  ["a number", 7, "7"],
  ["nothing", undefined, "undefined"],
])("the readable message of a thrown value: %s", (_, thrown, message) => {
  expect(messageOf(thrown)).toBe(message);
});

const cut = { data: "x".repeat(ERROR_DATA_CHARS_MAX) };
const chain = (causes: number): Error => new Error(`level ${causes}`, causes === 0 ? {} : { cause: chain(causes - 1) });

test.each([
  ["a plain object", { status: 409, detail: "taken" }, '{"status":409,"detail":"taken"}'],
  ["a plain object with a number that JSON does not have", { n: 7n }, '{"n":"7"}'],
  ["an object with a message, as of another realm", { message: "broken", stack: "…" }, "broken"],
  ["a list", [1, 2], "1,2"],
  ["an error with a cause", new Error("fetch failed", { cause: new Error("refused") }), "fetch failed: refused"],
  ["a cause that is a text", new Error("fetch failed.", { cause: "no route" }), "fetch failed: no route"],
  ["a cause that the message quotes", new Error("bad: disk full", { cause: new Error("disk full") }), "bad: disk full"],
  ["several errors", new AggregateError([new Error("a"), new Error("b")], "Both failed"), "Both failed: a; b"],
  ["several errors without a message", new AggregateError([new Error("a"), "b"]), "a; b"],
  [
    "more errors than are named",
    new AggregateError(
      Array.from({ length: ERROR_DEPTH_MAX + 2 }, (_, n) => `${n}`),
      "All failed",
    ),
    "All failed: 0; 1; 2; 3; 4; and 2 more",
  ],
  ["a long chain", chain(9), "level 9: level 8: level 7: level 6: level 5: level 4"],
  ["one of Belay's own, whose cause is for the log", new ControlError("busy", "No.", { cause: "secret" }), "No."],
  ["more data than anybody reads", cut, `${JSON.stringify(cut).slice(0, ERROR_DATA_CHARS_MAX)}… (11 more characters)`],
])("the message is not [object Object], and includes the causes: %s", (_, thrown, message) => {
  expect(messageOf(thrown)).toBe(message);
});

test("a cause that is its own cause terminates", () => {
  const error = new Error("round");
  error.cause = error;
  expect(messageOf(error)).toBe("round");
});

test("G12: a thrown value without a message, or with an odd one, has a text", () => {
  const wordless = Object.create(null);
  const unwilling = {
    toString: () => {
      throw new Error("I will not say.");
    },
  };
  for (const thrown of [wordless, unwilling, Object.assign(new Error(), { message: wordless })]) {
    expect(messageOf(thrown)).toBe("It failed without a message.");
  }
  expect(messageOf(Object.assign(new Error(), { message: 7 }))).toBe("7");
});

test("every hint is a sentence, and only failures that may pass are retryable", () => {
  for (const [code, { hint }] of Object.entries(ADVICE)) expect(hint, code).toMatch(/^[A-Z].*\.$/);
  const retryable = Object.entries(ADVICE).filter(([, advice]) => advice.retryable);
  expect(retryable.map(([code]) => code)).toEqual([
    "busy",
    "queue_full",
    "overloaded",
    "shutting_down",
    "store_full",
    "store_locked",
    "unavailable",
    "disconnected",
  ]);
});

test("an unhandled variant is a Bug that names it", () => {
  const odd = { type: "odd" };
  // @ts-expect-error A value that exists is exactly what the compiler rules out.
  expect(() => unreachable(odd)).toThrow(new Bug('not a case: {"type":"odd"}'));
  expect(new Bug("x").name).toBe("Bug");
});
