import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { emptyHome } from "../../../../test/fixtures/empty-data-dir.ts";
import { executedOf, makePlan, openRuntime, retentionOf } from "./runtime.ts";

const AGENT = join(import.meta.dirname, "../../../../test/fixtures/obedient-agent.ts");

test("G40: commands cannot change what the next start executes: configuration, modules, instructions", async () => {
  const home = emptyHome();
  const at = (name: string): string => join(home.dir, name);
  const config = at("mine.json");
  const modules = { agent: "agent.mjs", tools: "tools.mjs", hooks: "hooks.mjs" };
  writeFileSync(at("follow.md"), "Be brief.");
  writeFileSync(config, JSON.stringify({ ...modules, instructions: { file: "follow.md" }, store: ":memory:" }));
  const executed = executedOf(await makePlan({ home, flags: { config } }));
  expect(executed).toEqual(expect.arrayContaining([config, at("follow.md"), ...Object.values(modules).map(at)]));
});

describe("the demo agent", () => {
  test.each([
    ["--mode", { mode: "auto" }],
    ["--workspace", { workspace: "/nope" }],
    ["--tools", { tools: "mine.ts" }],
    ["--instructions", { instructions: "mine.md" }],
    ["--workspace, --mode", { mode: "ask", workspace: "." }],
  ])("refuses %s, which it would ignore", async (options, flags) => {
    const planned = makePlan({ home: emptyHome(), flags: { ...flags, config: false } });
    await expect(planned).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining(`the demo agent takes no ${options}:`),
      hint: expect.stringContaining("--model"),
    });
  });

  test("accepts the options that it uses; a named agent accepts all of them", async () => {
    const home = emptyHome();
    await makePlan({ home, flags: { directories: "any", require: "group", config: false } });
    await makePlan({ home, flags: { agent: AGENT, mode: "auto", workspace: home.dir, config: false } });
  });

  test("names the mode and the workspace of a configuration file as not used", async () => {
    const home = emptyHome();
    const config = join(home.dir, "mine.json");
    writeFileSync(config, JSON.stringify({ mode: "auto", workspace: "/nope", store: ":memory:" }));
    const { belay, notices, workspace } = await openRuntime(await makePlan({ home, flags: { config } }), {});
    await belay.close();
    expect(workspace).toBe(join(home.dir, "demo"));
    expect(notices).toContain("The demo agent has no modes, and asks before it writes: the mode auto is not used.");
    expect(notices).toContain("The demo agent works in its own folder: the workspace /nope is not used.");
  });

  test("prints no notice about a default mode and workspace", async () => {
    const home = emptyHome();
    const plan = await makePlan({ home, flags: { store: ":memory:", config: false } });
    const { belay, notices } = await openRuntime(plan, {});
    await belay.close();
    expect(notices.join("\n")).not.toMatch(/not used/);
  });
});

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
