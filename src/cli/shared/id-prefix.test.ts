import { describe, expect, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import type { BelayControl } from "../../ports/control.ts";
import { resolveId, resolveSession } from "./id-prefix.ts";

const SOME = [
  ...["ses_abc1", "run_abd2", "call_abd2.1", "call_abd2.10", "ask_abd2.1", "run_abe3", "proc_abc1.1"],
  ...["ses_build", "ses_build-2", "proc_build.10"],
];

/** A control that has these ids, and records each prefix that is searched for. */
function someControl(ids: readonly string[] = SOME) {
  const searched: string[] = [];
  const part = {
    ids: async (prefix: string, { limit }: { readonly limit: number }) => {
      searched.push(prefix);
      const found = ids.filter((id) => id.startsWith(prefix)).sort();
      return { ids: found.slice(0, limit), complete: found.length <= limit };
    },
    session: () => ({ row: async () => ({ title: "a \u001b[31mtitle" }) }),
    run: async () => ({ row: async () => ({ phase: "live" }) }),
    findSession: async (id: string) => (id === "run_abe3" ? ("ses_abc1" as const) : undefined),
  };
  return { control: part as unknown as BelayControl, searched };
}

const refusal = (promise: Promise<unknown>): Promise<ControlError> =>
  promise.then(
    () => expect.fail("it was not refused"),
    (error: ControlError) => error,
  );

describe("resolveId() finds the one id that was typed in full or as a prefix", () => {
  test.each([
    ["run_abd2", "run_abd2"],
    ["run_abe", "run_abe3"],
    ["call_abd2.1", "call_abd2.1"],
    ["call_abd2.10", "call_abd2.10"],
    ["ses_a", "ses_abc1"],
    ["proc_a", "proc_abc1.1"],
    ["ask", "ask_abd2.1"],
    ["abe", "run_abe3"],
    ["abd2", "run_abd2"],
    ["abd2.10", "call_abd2.10"],
    ["ses_build", "ses_build"],
    ["build", "ses_build"],
    ["ses_build-", "ses_build-2"],
  ])("%s is %s", async (typed, id) => {
    expect(await resolveId(someControl().control, typed)).toBe(id);
  });

  test("a full generated id is returned without a search", async () => {
    const { control, searched } = someControl();
    const id = "run_1k7fgqs2h8hcnnbubeaepbdg";
    expect(await resolveId(control, id)).toBe(id);
    expect(searched).toEqual([]);
  });

  test("the id of something that ended does not mean a later id that begins with it", async () => {
    expect(await resolveId(someControl().control, "proc_build.1")).toBe("proc_build.1");
    expect((await refusal(resolveId(someControl().control, "build.1"))).code).toBe("not_found");
  });

  test("a full id means itself while the store cannot be read; a prefix is refused", async () => {
    const { control } = someControl();
    const broken = { ...control, ids: () => Promise.reject(new ControlError("unavailable", "no")) } as BelayControl;
    expect(await resolveId(broken, "ses_build")).toBe("ses_build");
    expect((await refusal(resolveId(broken, "build"))).code).toBe("unavailable");
  });

  test("a well-formed id that does not exist is returned; a malformed one is reported as not found", async () => {
    expect(await resolveId(someControl().control, "run_zzz")).toBe("run_zzz");
    expect((await refusal(resolveId(someControl().control, "zzz"))).code).toBe("not_found");
    expect((await refusal(resolveId(someControl().control, ""))).code).toBe("not_found");
    expect((await refusal(resolveId(someControl().control, "run_abd2", ["question"]))).code).toBe("not_found");
  });
});

test("an ambiguous prefix is refused, and the error lists the ids", async () => {
  const { code, message, hint } = await refusal(resolveId(someControl().control, "ses_"));
  expect(code).toBe("invalid");
  expect(message).toContain("3 ids");
  expect(hint).toContain("ses_abc1  session, a title");
  expect(hint).toContain("ses_build-2  session, a title");
  const both = await refusal(resolveId(someControl(["ses_x", "run_x"]).control, "x"));
  expect(both.hint).toContain("run_x  run, live");
});

test("a prefix of more than ten ids is refused with the first ten", async () => {
  const many = Array.from({ length: 30 }, (_, at) => `run_m${at}`);
  const { message, hint } = await refusal(resolveId(someControl(many).control, "run_m"));
  expect(message).toContain("more than 10 ids");
  expect(hint).toMatch(/run_m17 {2}run, live\n {4}and more$/);
});

test("resolveSession() finds a session by its own id and by the id of a run in it", async () => {
  expect(await resolveSession(someControl().control, "run_abe")).toBe("ses_abc1");
  expect(await resolveSession(someControl().control, "ses_abc1")).toBe("ses_abc1");
  expect((await refusal(resolveSession(someControl().control, "run_zzz"))).code).toBe("not_found");
});
