// Limits that depend on each other.
import { expect, test } from "vitest";
import * as limits from "./limits.ts";

test("G33: every limit is a finite, positive whole number", () => {
  for (const [name, limit] of Object.entries(limits)) {
    expect(Number.isSafeInteger(limit) && limit > 0, name).toBe(true);
  }
});

test("G33: the name of every limit has a unit", () => {
  const measures = ["MS", "BYTES", "CHARS", "DEPTH", "ATTEMPTS", "PERCENT"];
  const things = ["RUNS", "CALLS", "LANES", "EVENTS", "ROWS", "ANSWERS", "QUESTIONS", "ITEMS", "GRANTS", "CHANGES"];
  const more = ["PROCESSES", "MODES", "CELLS", "ABORTS", "PROMISES", "SESSIONS", "MEMOS"];
  const units = new RegExp(`(^|_)(${[...measures, ...things, ...more].join("|")})(_|$)`);
  for (const name of Object.keys(limits)) expect(name).toMatch(units);
});

test("a single prompt fits an empty queue", () => {
  expect(limits.PROMPT_BYTES_MAX).toBeLessThanOrEqual(limits.QUEUE_BYTES_MAX);
});

test("a lease survives two failed renewals", () => {
  expect(limits.LEASE_RENEW_MS * 3).toBeLessThan(limits.LEASE_TTL_MS);
});

test("G12: the grace leaves time to settle within the two seconds after a cancel", () => {
  expect(limits.GRACE_MS + 500).toBeLessThanOrEqual(2_000);
});

test("G33: the results of all live processes fit into the inbox", () => {
  expect(limits.PROCESSES_LIVE_MAX).toBeLessThan(limits.INBOX_ITEMS_MAX);
});

test("G12: a call, then its turn, is abandoned within half a second of the grace, with room for two commits", () => {
  expect(limits.DEATH_MS + 2 * limits.RETURN_MS).toBeLessThanOrEqual(450);
});

test("a process of a call that cannot be interrupted gets a signal before it is killed", () => {
  expect(limits.UNINTERRUPTED_PERCENT).toBeLessThan(100);
});

test("a shutdown leaves time for the grace", () => {
  expect(limits.GRACE_MS).toBeLessThan(limits.SHUTDOWN_MS);
});

test("G24: lanes without a worker are found well within two seconds of the end of their lease", () => {
  expect(limits.LEASE_RENEW_MS).toBeLessThan(2_000);
});

test("pauses between attempts grow", () => {
  expect(limits.RETRY_FIRST_MS).toBeLessThan(limits.RETRY_LAST_MS);
});

test("G25: a run that crashes its worker three times fails", () => {
  expect(limits.ATTEMPTS_MAX).toBe(3);
});

test("G7: a memo is kept for hours longer than a client retries a request", () => {
  expect(limits.RESEND_MS_MAX + limits.WAIT_MS_MAX + 60 * 60_000).toBeLessThan(limits.MEMO_MS);
});
