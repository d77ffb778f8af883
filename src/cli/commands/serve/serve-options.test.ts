import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { emptyHome } from "../../../../test/fixtures/empty-data-dir.ts";
import { ControlError } from "../../../core/errors.ts";
import { levelOf } from "./serve-options.ts";

const refusal = (act: () => unknown): ControlError => {
  try {
    act();
  } catch (error) {
    if (error instanceof ControlError) return error;
    throw error;
  }
  throw new Error("It was not refused.");
};

test("an invalid log level in the home's file is refused with the name of the file and the valid levels", () => {
  const home = emptyHome();
  writeFileSync(home.levelFile, "loud\n");
  const { code, message, hint } = refusal(() => levelOf({ logLevel: "info" }, home, {}));
  expect(code).toBe("invalid");
  expect(message).toBe(`There is no log level "loud", as the file ${home.levelFile} has it.`);
  expect(hint).toBe("They are: debug, info, warn, error. Write one of them into that file, or remove it.");
  writeFileSync(home.levelFile, "debg\n");
  expect(refusal(() => levelOf({}, home, {})).hint).toMatch(/^Did you mean debug\? Write it into that file/);
});

test("an invalid log level is refused with the name of its option or variable", () => {
  const home = emptyHome();
  expect(refusal(() => levelOf({ logLevel: "loud" }, home, {})).message).toContain('"loud", as --log-level has it.');
  expect(refusal(() => levelOf({}, home, { BELAY_LOG_LEVEL: "loud" })).message).toContain("as BELAY_LOG_LEVEL has it.");
});

test("the log level of the file takes precedence over the option, and that over the variable", () => {
  const home = emptyHome();
  expect(levelOf({}, home, {})).toBe("info");
  expect(levelOf({}, home, { BELAY_LOG_LEVEL: "warn" })).toBe("warn");
  expect(levelOf({ logLevel: "error" }, home, { BELAY_LOG_LEVEL: "warn" })).toBe("error");
  writeFileSync(home.levelFile, "debug\n");
  expect(levelOf({ logLevel: "error" }, home, { BELAY_LOG_LEVEL: "warn" })).toBe("debug");
});
