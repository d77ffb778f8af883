import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { emptyHome } from "../../../../test/fixtures/empty-data-dir.ts";
import { makePlan, openRuntime } from "./runtime.ts";

const AGENT = join(import.meta.dirname, "../../../../test/fixtures/obedient-agent.ts");

describe("the demo agent", () => {
  test.each([
    ["--mode", { mode: "auto" }],
    ["--workspace", { workspace: "/nope" }],
    ["--tools", { tools: "mine.ts" }],
    ["--instructions", { instructions: "mine.md" }],
    ["--workspace, --mode", { mode: "ask", workspace: "." }],
  ])("refuses %s, which it would not heed: nobody is left to believe that it does", async (options, flags) => {
    const planned = makePlan({ home: emptyHome(), flags: { ...flags, config: false } });
    await expect(planned).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining(`the demo agent takes no ${options}:`),
      hint: expect.stringContaining("--model"),
    });
  });

  test("takes what it heeds, and an agent that is named takes all of it", async () => {
    const home = emptyHome();
    await makePlan({ home, flags: { directories: "any", require: "group", config: false } });
    await makePlan({ home, flags: { agent: AGENT, mode: "auto", workspace: home.dir, config: false } });
  });

  test("says what of a configuration it does not heed: the mode, the workspace", async () => {
    const home = emptyHome();
    const config = join(home.dir, "mine.json");
    writeFileSync(config, JSON.stringify({ mode: "auto", workspace: "/nope", store: ":memory:" }));
    const { belay, notices, workspace } = await openRuntime(await makePlan({ home, flags: { config } }), {});
    await belay.close();
    expect(workspace).toBe(join(home.dir, "demo"));
    expect(notices).toContain("The demo agent has no modes, and asks before it writes: the mode auto is not used.");
    expect(notices).toContain("The demo agent works in a folder of its own: the workspace /nope is not used.");
  });

  test("says nothing about a mode and a workspace that nobody has asked for", async () => {
    const home = emptyHome();
    const plan = await makePlan({ home, flags: { store: ":memory:", config: false } });
    const { belay, notices } = await openRuntime(plan, {});
    await belay.close();
    expect(notices.join("\n")).not.toMatch(/not used/);
  });
});
