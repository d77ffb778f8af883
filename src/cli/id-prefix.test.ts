import { describe, expect, test } from "vitest";
import type { BelayControl, Explanation } from "../control.ts";
import type { ControlError } from "../core/control-error.ts";
import type { RunRow } from "../core/rows.ts";
import type { SessionRow } from "../ports.ts";
import { resolveId, resolveSession } from "./id-prefix.ts";

const BUSY: Explanation = {
  sessionId: "ses_abc1",
  asOf: 1,
  busy: true,
  live: {
    runId: "run_abd2",
    phase: "running",
    reason: undefined,
    attempt: 1,
    turn: undefined,
    since: undefined,
    calls: [
      { callId: "call_abd2.1", name: "shell", phase: "running", waits: undefined, since: undefined },
      { callId: "call_abd2.10", name: "write", phase: "running", waits: "approval", since: undefined },
    ],
    questions: [
      { id: "ask_abd2.1", owner: "call_abd2.10", about: { kind: "question", text: "?" }, deadlineMs: undefined },
    ],
  },
  queue: [{ runId: "run_abe3", text: "later" }],
  steers: [],
  processes: [{ id: "proc_abc1.1", owner: "ses_abc1", title: "sleep", phase: "running", feedback: "silent" }],
  mode: undefined,
  driver: undefined,
  summary: "",
};

/** What it was asked is counted: whoever stops something should not wait for a search that is not needed. */
function someControl(sessions: readonly string[] = [], runs: readonly string[] = []) {
  const asked: string[] = [];
  const part = {
    live: async () => {
      asked.push("live");
      return [BUSY];
    },
    sessions: async ({ after }: { readonly after?: string } = {}) => {
      asked.push("sessions");
      const from = after === undefined ? 0 : sessions.indexOf(after) + 1;
      return sessions.slice(from, from + 1_000).map((id) => ({ id, title: undefined }) as SessionRow);
    },
    session: (id: string) => ({
      runs: async () => (id === sessions.at(-1) ? runs : []).map((id) => ({ id, phase: "settled" }) as RunRow),
    }),
    home: async (id: string) => (id === "run_abe3" ? ("ses_abc1" as const) : undefined),
  };
  return { control: part as unknown as BelayControl, asked };
}

const refusal = (promise: Promise<unknown>): Promise<ControlError> =>
  promise.then(
    () => expect.fail("it was not refused"),
    (error: ControlError) => error,
  );

describe("what is typed finds the one thing that is meant", () => {
  test.each([
    ["run_abd2", "run_abd2"],
    ["run_abe", "run_abe3"],
    ["call_abd2.1", "call_abd2.1"],
    ["call_abd2.10", "call_abd2.10"],
    ["ses", "ses_abc1"],
    ["proc_", "proc_abc1.1"],
    ["ask", "ask_abd2.1"],
    ["abe", "run_abe3"],
    ["abd2", "run_abd2"],
    ["abd2.10", "call_abd2.10"],
  ])("%s is %s", async (typed, id) => {
    expect(await resolveId(someControl().control, typed)).toBe(id);
  });

  test("a whole id is taken as it is, without a search", async () => {
    const { control, asked } = someControl();
    const id = "run_1k7fgqs2h8hcnnbubeaepbdg";
    expect(await resolveId(control, id)).toBe(id);
    expect(asked).toEqual([]);
  });

  test("what is not going on is looked for among sessions and their recent runs", async () => {
    const old = someControl(["ses_old1", "ses_old2"], ["run_old9"]);
    expect(await resolveId(old.control, "run_old")).toBe("run_old9");
    expect(await resolveId(old.control, "ses_old2")).toBe("ses_old2");
    const many = Array.from({ length: 1_500 }, (_, at) => `ses_m${String(at).padStart(5, "0")}`);
    expect(await resolveId(someControl(many).control, "ses_m01499")).toBe("ses_m01499");
  });

  test("an id that nothing here begins with is handed on; what cannot be an id is not", async () => {
    expect(await resolveId(someControl().control, "run_zzz")).toBe("run_zzz");
    expect((await refusal(resolveId(someControl().control, "zzz"))).code).toBe("not_found");
    expect((await refusal(resolveId(someControl().control, ""))).code).toBe("not_found");
    expect((await refusal(resolveId(someControl().control, "run_abd2", ["question"]))).code).toBe("not_found");
  });
});

test("the beginning of several is refused, and names them", async () => {
  const { code, message, hint } = await refusal(resolveId(someControl().control, "call_"));
  expect(code).toBe("invalid");
  expect(message).toContain("2 ids");
  expect(hint).toContain("call_abd2.1  call, shell");
  expect(hint).toContain("call_abd2.10  call, write");
});

test("a session is found by anything in it", async () => {
  expect(await resolveSession(someControl().control, "run_abe")).toBe("ses_abc1");
  expect(await resolveSession(someControl().control, "ses_abc1")).toBe("ses_abc1");
  expect((await refusal(resolveSession(someControl().control, "run_zzz"))).code).toBe("not_found");
});
