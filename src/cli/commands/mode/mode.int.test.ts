// `belay mode`, as a user types it, on a real server.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CliFixture } from "../../../../test/fixtures/cli-server.ts";
import { EXIT_CODE } from "../../shared/exit-code.ts";

// Each test starts several programs, and how long that takes depends on the load of the machine.
vi.setConfig({ testTimeout: 40_000 });

const MODES = [
  { id: "ask", name: "Ask", description: "People are \u001b[31masked." },
  { id: "auto", name: "Auto" },
] as const;

let cli: CliFixture;

beforeEach(async () => {
  cli = await CliFixture.open(MODES);
});

afterEach(() => cli.close());

test("mode shows the mode and the available ones; setting it reports the position, or `unchanged`", async () => {
  const { id } = cli.session;
  const { code, out, err } = await cli.type("mode", id.slice(0, 20));
  expect([code, err]).toEqual([0, ""]);
  expect(out).toBe(`${id}  ask\n  * ask  Ask: People are asked.\n    auto  Auto\n`);
  const set = await cli.type("mode", id, "auto", "--by", "ann");
  expect([set.code, set.out]).toEqual([0, `${id}  changed: from now on the mode is auto (recorded at position 2)\n`]);
  expect((await cli.type("mode", id, "auto")).out).toContain("unchanged: the mode was auto already");
  expect(await cli.json("mode", id)).toEqual({ code: 0, value: { sessionId: id, mode: "auto", modes: MODES } });
  expect((await cli.type("logs", id)).out).toMatch(/session\.mode_set\s+auto \(by ann\)/);
});

test("an unknown mode exits 2 and lists the available ones", async () => {
  const { code, out, err } = await cli.type("mode", cli.session.id, "aks");
  expect([code, out]).toEqual([EXIT_CODE.invalid, ""]);
  expect(err).toContain("Did you mean ask? The modes are ask, auto.");
  expect((await cli.session.row()).head).toBe(1);
});
