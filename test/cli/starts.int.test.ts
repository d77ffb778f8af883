// Several servers that start at once in a directory whose server was killed. `BELAY_START_ROUNDS` sets how often.
import { describe, expect, test } from "vitest";
import { EXIT_CODE } from "../../src/cli/exit-code.ts";
import { AGENT, Shell } from "../fixtures/shell.ts";

const ROUNDS = Number(process.env.BELAY_START_ROUNDS ?? 1);
const SERVE = ["serve", "--no-tcp", "--agent", AGENT] as const;

describe("G26: servers that start at once after a crash", { timeout: 60_000 * ROUNDS }, () => {
  test.each([2, 3, 7])("of %d exactly one serves, its socket works, and the others say so", async (programs) => {
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
  });
});
