// Whether a session's log can be written: the effect of each failure, and its duration.
import { describe, expect, test } from "vitest";
import { type ControlCode, ControlError } from "../../core/errors.ts";
import { RETRY_FIRST_MS, RETRY_LAST_MS } from "../../core/limits.ts";
import {
  afterFailure,
  type Health,
  isUnwritten,
  maySend,
  type Refused,
  takesBeginnings,
  takesCommands,
  WELL,
} from "./health.ts";

const failure = (code: ControlCode): ControlError => new ControlError(code, "The store failed.");
const full = failure("store_full");
const lost = failure("unavailable");
const NOW = 1_000;

describe("after a failure", () => {
  test.each<readonly [ControlCode, Health["kind"]]>([
    ["store_full", "refusing"],
    ["store_locked", "refusing"],
    ["store_corrupt", "refusing"],
    ["overloaded", "refusing"],
    ["unavailable", "unknown"],
    ["internal", "unknown"],
    ["store_newer", "unknown"],
  ])("with %s it is %s", (code, kind) => {
    expect(afterFailure(WELL, failure(code), "new", NOW).kind).toBe(kind);
    expect(isUnwritten(failure(code))).toBe(kind === "refusing");
  });

  test("it contains the error that callers get, and the scope of the refusal", () => {
    const until = NOW + RETRY_FIRST_MS;
    for (const scope of ["new", "all"] as const) {
      expect(afterFailure(WELL, full, scope, NOW)).toEqual({
        kind: "refusing",
        scope,
        error: full,
        until,
        failures: 1,
      });
    }
    expect(afterFailure(WELL, lost, "new", NOW)).toEqual({ kind: "unknown", error: lost, until, failures: 1 });
  });

  test("it stays unknown, whatever the next failure is, until the log has been read", () => {
    const unknown = afterFailure(WELL, lost, "new", NOW);
    expect(afterFailure(unknown, full, "all", NOW)).toMatchObject({ kind: "unknown", error: full, failures: 2 });
  });

  test("a refusal that is followed by a lost answer is unknown", () => {
    expect(afterFailure(afterFailure(WELL, full, "new", NOW), lost, "all", NOW).kind).toBe("unknown");
  });

  test(`the pauses begin at ${RETRY_FIRST_MS} ms, double, and end at ${RETRY_LAST_MS} ms`, () => {
    const pauses: number[] = [];
    let health: Health = WELL;
    for (let failures = 0; failures < 40; failures += 1) {
      health = afterFailure(health, failures % 2 === 0 ? full : lost, "new", NOW);
      if (health.kind !== "well") pauses.push(health.until - NOW);
    }
    expect(pauses.slice(0, 7)).toEqual([50, 100, 200, 400, 800, 1_600, 2_000]);
    expect(new Set(pauses.slice(7))).toEqual(new Set([RETRY_LAST_MS]));
  });
});

describe("permissions", () => {
  const refusing = (scope: Refused): Health => afterFailure(WELL, full, scope, NOW);
  const all = { begins: true, takes: true, sends: true };
  const none = { begins: false, takes: false, sends: false };
  const cases: readonly (readonly [string, Health, inPause: object, afterwards: object])[] = [
    ["well", WELL, all, all],
    ["refusing what is new", refusing("new"), { ...all, begins: false }, all],
    ["refusing what can be refused", refusing("refusable"), { ...none, sends: true }, all],
    ["refusing all", refusing("all"), none, all],
    ["unknown", afterFailure(WELL, lost, "new", NOW), none, none],
  ];
  test.each(cases)("%s: in the pause, and when it is over", (_, health, inPause, afterwards) => {
    const allowed = (now: number) => ({
      ...{ begins: takesBeginnings(health, now), takes: takesCommands(health, now), sends: maySend(health, now) },
    });
    expect(allowed(NOW)).toEqual(inPause);
    expect(allowed(NOW + RETRY_FIRST_MS - 1)).toEqual(inPause);
    expect(allowed(NOW + RETRY_FIRST_MS)).toEqual(afterwards);
  });
});
