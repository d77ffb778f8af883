import { expect, test } from "vitest";
import { stdoutLoss } from "./stdout-errors.ts";

const failed = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code });

test("a closed terminal is a hangup, and a closed pipe is unread output; neither is an error", () => {
  expect(stdoutLoss(failed("EIO"), true)).toBe("hangup");
  expect(stdoutLoss(failed("EPIPE"), false)).toBe("unread");
});

test("a failing disk is `internal`, and a full one is `store_full`", () => {
  expect(stdoutLoss(failed("EIO"), false)).toMatchObject({ code: "internal" });
  expect(stdoutLoss(failed("ENOSPC"), false)).toMatchObject({ code: "store_full" });
});
