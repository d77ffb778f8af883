// The other cells of the table of situations, a program that is killed while it closes, and three deploys in a row.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { until } from "../../src/process/tree/poll-until.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { AGENT, Shell } from "../fixtures/shell.ts";
import { checkCell, firstLife, nextLife, storesFolder } from "./lives.ts";
import { ENDS, MORE_SITUATIONS, SITUATIONS } from "./situations.ts";

const newPlace = storesFolder();

describe.each(ENDS.filter((end) => end !== "close()"))(
  "G25: after %s and the next start,",
  { timeout: 60_000 },
  (end) => {
    test.concurrent.each(MORE_SITUATIONS)("%s", (situation) => checkCell(newPlace(), situation, end));
  },
);

describe("G25: after a SIGKILL that comes while it closes,", { timeout: 60_000 }, () => {
  const situations = [...SITUATIONS, ...MORE_SITUATIONS];
  test.concurrent.each(situations)("%s", (situation) => checkCell(newPlace(), situation, "SIGKILL while it closes"));
});

/** Their run is still live after each deploy. */
const LASTING = ["turn that heeds", "turn that throws", "turn that is deaf", "turn that waits for a process"] as const;

describe("G25: three deploys in a row are no crash loop,", { timeout: 60_000 }, () => {
  test.concurrent.each([...LASTING, "two Belays", "two Belays, agent that is deaf"] as const)(
    "%s",
    async (situation) => {
      const place = newPlace();
      const { runs, exited } = await firstLife(place, situation, "SIGTERM");
      const others = [await firstLife(place, situation, "SIGTERM"), await firstLife(place, situation, "SIGTERM")];
      expect([exited, ...others.map((one) => one.exited)]).toEqual(["SIGTERM", "SIGTERM", "SIGTERM"]);
      const lives = await nextLife(place, runs);
      expect(lives).toEqual([{ outcome: "completed", parked: true, lost: false, resumed: true }]);
    },
  );
});

const IGNORES = `
export const agent = async (turn) => {
  if (turn.attempt > 1 || (await turn.transcript()).some(({ role }) => role === "assistant")) return "taken up";
  turn.emit("working\\n");
  await turn.call("tool", null, ({ signal }) => new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  }));
  return "done";
};
`;

test("G25: a server that gets SIGTERM parks the run of an agent that ignores it", { timeout: 60_000 }, async () => {
  const shell = new Shell();
  const agent = join(shell.home, "ignores.mjs");
  writeFileSync(agent, IGNORES);
  const serve = ["serve", "--no-tcp", "--agent", agent] as const;
  const server = shell.start(...serve);
  await server.sees(/is ready/);
  const run = shell.start("run", "go");
  await run.sees(/working\n/);
  server.signal("SIGTERM");
  expect(await server.ended).toBe(0);
  await shell.start(...serve).sees(/is ready/);
  expect(await run.ended).toBe(0);
  expect(run.out).toContain("taken up");
});

test("G25: a server that gets SIGTERM while it starts ends, and the next one serves", { timeout: 60_000 }, async () => {
  const shell = new Shell();
  const serve = ["serve", "--no-tcp", "--agent", AGENT] as const;
  const first = shell.start(...serve);
  const lock = join(shell.home, "belay.db.lock");
  expect(await until(() => existsSync(lock), { clock: systemClock, waitMs: 20_000 })).toBe(true);
  first.signal("SIGTERM");
  expect([0, "SIGTERM", 143]).toContain(await first.ended);
  expect(existsSync(join(shell.home, "server.json"))).toBe(false);
  await shell.start(...serve).sees(/is ready/);
  expect((await shell.belay("ps")).code).toBe(0);
});
