// Ids lead to the session and run they belong to, and contain no special characters.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  callId,
  isCallId,
  isProcessId,
  isRunId,
  isSessionId,
  processId,
  type RunId,
  runOf,
  type SessionId,
  sessionOf,
  tenantOf,
  tenantPrefix,
  turnId,
  wakeRunId,
} from "./ids.ts";

const checks = [
  ["ses_", isSessionId, 80],
  ["run_", isRunId, 128],
  ["call_", isCallId, 128],
] as const;

test("turns and calls are named after their run and their ordinal", () => {
  expect(turnId("run_abc", 1)).toBe("turn_abc.1");
  expect(callId("run_abc", 12)).toBe("call_abc.12");
});

test.each(["run_abc", "run_a.b", "run_a_b", "run_1"] satisfies RunId[])("work of %s leads to its run", (run) => {
  expect(runOf(turnId(run, 3))).toBe(run);
  expect(runOf(callId(run, 30))).toBe(run);
});

test.each(["ses_abc", "ses_a.b", "ses_a_b.7"] satisfies SessionId[])(
  "an id derived from %s leads to its session",
  (id) => {
    expect(sessionOf(processId(id, 30))).toBe(id);
    expect(runOf(turnId(wakeRunId(id, 12), 3))).toBe(wakeRunId(id, 12));
    expect(isProcessId(processId(id, 30)) && isRunId(wakeRunId(id, 12))).toBe(true);
  },
);

test("the id of a process ends with its number", () => {
  expect(processId("ses_abc", 2)).toBe("proc_abc.2");
  expect(isProcessId("proc_a.b.12")).toBe(true);
  for (const bad of [
    "proc_",
    "proc_abc",
    "proc_.1",
    "proc_abc.",
    "proc_abc.x",
    "proc_a b.1",
    "proc_abc.1\n",
    "proc_a.1x",
  ]) {
    expect(isProcessId(bad)).toBe(false);
  }
});

test.each([
  ["ses_abc", undefined],
  ["ses_a_b-c", undefined],
  ["ses_acme.1", "acme"],
  ["ses_acme.a.b", "acme"],
] satisfies [SessionId, string | undefined][])("G35: %s belongs to the tenant %j", (id, tenant) => {
  expect(tenantOf(id)).toBe(tenant);
  expect(id.startsWith(tenantPrefix("acme"))).toBe(tenant === "acme");
});

test("G35: an id derived from a session of one tenant never belongs to another tenant", () => {
  const name = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,3}$/);
  const rest = fc.stringMatching(/^[A-Za-z0-9_.-]{1,6}$/);
  fc.assert(
    fc.property(name, name, rest, fc.nat({ max: 99 }), (one, other, tail, ordinal) => {
      const operators: SessionId = `ses_${one}`;
      const tenants: SessionId = `ses_${one}.${tail}`;
      expect(tenantOf(operators)).toBeUndefined();
      expect(tenantOf(processId(operators, ordinal))).toBeUndefined();
      expect(tenantOf(processId(tenants, ordinal))).toBe(one);
      if (one !== other) expect(tenantOf(processId(tenants, ordinal))).not.toBe(other);
    }),
  );
});

test("G33: an id derived from the longest id is well formed", () => {
  const session: SessionId = `ses_${"x".repeat(76)}`;
  expect(isSessionId(session)).toBe(true);
  const woken = wakeRunId(session, Number.MAX_SAFE_INTEGER);
  expect(isRunId(woken) && isCallId(callId(woken, 1_000_000))).toBe(true);
  expect(isProcessId(processId(session, Number.MAX_SAFE_INTEGER))).toBe(true);
});

test.each(checks)("%s: letters, digits and the three marks are well formed", (prefix, check) => {
  expect(check(`${prefix}aZ09_.-`)).toBe(true);
  expect(check(`${prefix}x`)).toBe(true);
});

test.each(checks)("%s: a prefix alone, another prefix, or no prefix is malformed", (prefix, check) => {
  expect(check(prefix)).toBe(false);
  expect(check(`x${prefix}abc`)).toBe(false);
  expect(check("turn_abc.1")).toBe(false);
  expect(check("")).toBe(false);
});

test.each(checks)(
  "%s: G35: no characters that are special in a path, a header or a terminal",
  { meta: { id: "G35/ids-without-special-characters" } },
  (prefix, check) => {
    for (const bad of ["a b", "a/b", "a\n", "\na", "a\u0000", "a%2f", "ä", "a\u202e", "a;b", "a:b"]) {
      expect(check(`${prefix}${bad}`)).toBe(false);
    }
  },
);

test.each(checks)("%s: G33: ids are bounded", (prefix, check, charsMax) => {
  expect(check(prefix.padEnd(charsMax, "x"))).toBe(true);
  expect(check(prefix.padEnd(charsMax + 1, "x"))).toBe(false);
});
