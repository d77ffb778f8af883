import { expect, test } from "vitest";
import { retentionOf } from "./retention-flag.ts";

test("--retention takes limits of all sessions and of each", () => {
  expect(
    retentionOf("days=90,bytes=2GB,sessions=1000,session-days=0.5,session-events=20000,session-bytes=1.5MB"),
  ).toEqual({
    overall: { days: 90, bytes: 2e9, sessions: 1000 },
    perSession: { days: 0.5, events: 20_000, bytes: 1.5e6 },
  });
});

test.each(["", "days", "days=0", "day=5", "days=5MB", "sessions=1.5", "bytes=2XB", "days=-1", "days=5,,"])(
  "--retention %j is refused",
  (typed) => {
    expect(() => retentionOf(typed)).toThrow(/--retention takes limits such as days=90/);
  },
);
