// Failures as a caller sees them.
import { expect, test } from "vitest";
import { Bug, unreachable } from "./bug.ts";
import { ADVICE, ControlError, messageOf, toControlError } from "./control-error.ts";

test("an error carries its code, its advice and its cause", () => {
  const cause = new Error("disk");
  const error = new ControlError("store_full", "No space is left.", { cause });
  expect(error).toMatchObject({ name: "ControlError", code: "store_full", message: "No space is left.", cause });
  expect(error.retryable).toBe(true);
  expect(error.hint).toBe(ADVICE.store_full.hint);
  expect(error).toBeInstanceOf(Error);
});

test("a better hint replaces the general one", () => {
  expect(new ControlError("invalid", "Bad.", { hint: "Send text." }).hint).toBe("Send text.");
});

test("a control error passes through as it is", () => {
  const error = new ControlError("busy", "Busy.");
  expect(toControlError(error)).toBe(error);
});

test("G35: what somebody else threw is told as a fault of ours, its details only to the log", () => {
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
])("what can be read of what was thrown: %s", (_, thrown, message) => {
  expect(messageOf(thrown)).toBe(message);
});

test("G12: something thrown that has no words, or odd ones, is told all the same, and as a text", () => {
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

test("every advice is a sentence, and only what may help later is retryable", () => {
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

test("a case nobody thought of is a bug that says what it saw", () => {
  const odd = { type: "odd" };
  // @ts-expect-error A value that exists is exactly what the compiler rules out.
  expect(() => unreachable(odd)).toThrow(new Bug('not a case: {"type":"odd"}'));
  expect(new Bug("x").name).toBe("Bug");
});
