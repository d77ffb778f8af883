// Several programs start at once in a directory whose server was killed. `BELAY_START_ROUNDS` sets how often.
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXIT_OUTCOME } from "../../src/cli/commands/run/run-exit.ts";
import { EXIT_CODE } from "../../src/cli/shared/exit-code.ts";
import { AGENT, Shell } from "../fixtures/shell.ts";

const ROUNDS = Number(process.env.BELAY_START_ROUNDS ?? 1);
const SERVE = ["serve", "--no-tcp", "--agent", AGENT] as const;

describe("G26: programs that start at once after a crash", { timeout: 60_000 * ROUNDS }, () => {
  test.each([2, 3, 7])(
    "of %d servers exactly one serves, its socket works, and the others exit with `store_locked`",
    async (programs) => {
      const shell = new Shell();
      const first = shell.start(...SERVE);
      await first.sees(/is ready/);
      first.signal("SIGKILL");
      await first.ended;
      for (let round = 0; round < ROUNDS; round += 1) {
        const started = Array.from({ length: programs }, () => shell.start(...SERVE));
        const ends = await Promise.all(
          started.map((one) => Promise.race([one.sees(/is ready/).then(() => "ready"), one.ended])),
        );
        expect(ends.filter((end) => end === "ready")).toHaveLength(1);
        expect(ends.filter((end) => end === EXIT_CODE.store_locked)).toHaveLength(programs - 1);
        expect(await shell.belay("ps")).toMatchObject({ code: 0 });
        const winner = started[ends.indexOf("ready")];
        winner?.signal("SIGKILL");
        await winner?.ended;
      }
    },
  );

  test.each([2, 3, 7])("of %d runs one serves, the others connect to it, and each has its answer", async (programs) => {
    const shell = new Shell();
    for (let round = 0; round < ROUNDS; round += 1) {
      const first = shell.start(...SERVE);
      await first.sees(/is ready/);
      first.signal("SIGKILL");
      await first.ended;
      const answers = await Promise.all(
        Array.from({ length: programs }, (_, index) => shell.belay("run", "--agent", AGENT, `say ${index}`)),
      );
      expect(answers).toMatchObject(answers.map((_, index) => ({ code: 0, out: `${index}\n` })));
      expect(answers.some(({ err }) => err.includes("in this program (no server)"))).toBe(true);
    }
    expect(await shell.belay("verify", join(shell.home, "belay.db"))).toMatchObject({ code: 0 });
  });
});

test("G27: a server that waits for a run takes over when it ends, with the runs of other programs", {
  timeout: 60_000,
}, async () => {
  const shell = new Shell();
  const first = shell.start("run", "--agent", AGENT, "wait here");
  await first.sees(/here\n/);
  const server = shell.start(...SERVE);
  await server.sees(/waiting for the end of a run/);
  const second = shell.start("run", "--agent", AGENT, "wait there");
  await second.sees(/there\n/);
  first.signal("SIGINT");
  expect(await first.ended).toBe(EXIT_OUTCOME.cancelled);
  expect(first.err).toContain("1 other run joined this program: the server that waits takes over");
  await server.sees(/is ready/);
  expect((await shell.belay("ps")).out.match(/run_\w+ +run /g)).toHaveLength(1);
  second.signal("SIGINT");
  expect(await second.ended).toBe(EXIT_OUTCOME.cancelled);
  server.signal("SIGTERM");
  expect(await server.ended).toBe(0);
});
