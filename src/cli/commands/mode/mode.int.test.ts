// `belay mode` as a user types it, against the real server.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CliFixture } from "../../../../test/fixtures/cli-server.ts";
import { EXIT_CODE } from "../../shared/exit-code.ts";

// Programs are started, several in a test, and how long that takes is up to how busy the machine is.
vi.setConfig({ testTimeout: 40_000 });

const MODES = [
  { id: "ask", name: "Ask", description: "People are \u001b[31masked." },
  { id: "auto", name: "Auto" },
] as const;

let stage: CliFixture;

beforeEach(async () => {
  stage = await CliFixture.open(MODES);
});

afterEach(() => stage.close());

test("mode: what it is and what there is; set, it is said where, and set again that nothing was changed", async () => {
  const { id } = stage.session;
  const { code, out, err } = await stage.type("mode", id.slice(0, 20));
  expect([code, err]).toEqual([0, ""]);
  expect(out).toBe(`${id}  ask\n  * ask  Ask: People are asked.\n    auto  Auto\n`);
  const set = await stage.type("mode", id, "auto", "--by", "ann");
  expect([set.code, set.out]).toEqual([0, `${id}  changed: from now on the mode is auto (recorded at position 2)\n`]);
  expect((await stage.type("mode", id, "auto")).out).toContain("unchanged: the mode was auto already");
  expect(await stage.json("mode", id)).toEqual({ code: 0, value: { sessionId: id, mode: "auto", modes: MODES } });
  expect((await stage.type("logs", id)).out).toMatch(/session\.mode_set\s+auto \(by ann\)/);
});

test("mode: one that there is not is 2, and names those there are", async () => {
  const { code, out, err } = await stage.type("mode", stage.session.id, "aks");
  expect([code, out]).toEqual([EXIT_CODE.invalid, ""]);
  expect(err).toContain("Did you mean ask? The modes are ask, auto.");
  expect((await stage.session.row()).head).toBe(1);
});
