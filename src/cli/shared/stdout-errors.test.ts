import { expect, test } from "vitest";
import { stdoutLoss } from "./stdout-errors.ts";

const failed = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code });

test("a closed terminal is a hangup and a reader that left is none; neither is a fault", () => {
  expect(stdoutLoss(failed("EIO"), true)).toBe("hangup");
  expect(stdoutLoss(failed("EPIPE"), false)).toBe("unread");
});

test("a disk that fails or is full is an error, by its own code", () => {
  expect(stdoutLoss(failed("EIO"), false)).toMatchObject({ code: "internal" });
  expect(stdoutLoss(failed("ENOSPC"), false)).toMatchObject({ code: "store_full" });
});
