import { describe, expect, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { ESCAPED_AFTER_MS, GRACE_MS, GRACE_MS_MAX } from "../limits.ts";
import { rungs, StopLadder } from "./stop-ladder.ts";

function climbing() {
  const clock = manualClock();
  const log: string[] = [];
  const ladder = new StopLadder({
    clock,
    send: (signal) => log.push(`${signal} at ${clock.elapsed()}`),
    escaped: () => log.push(`escaped at ${clock.elapsed()}`),
  });
  return { clock, ladder, log };
}

describe("the ladder", () => {
  test("G19: sends SIGTERM, then SIGKILL after the grace, and reports an escape much later", {
    meta: { id: "G19/stop-escalates-within-two-seconds" },
  }, async () => {
    const { clock, ladder, log } = climbing();
    ladder.stop(GRACE_MS);
    expect(log).toEqual(["SIGTERM at 0"]);
    await clock.advance(GRACE_MS + ESCAPED_AFTER_MS);
    expect(log).toEqual(["SIGTERM at 0", "SIGKILL at 1500", `escaped at ${GRACE_MS + ESCAPED_AFTER_MS}`]);
  });

  test("without a grace it sends SIGKILL in the same tick", () => {
    const { ladder, log } = climbing();
    ladder.stop(0);
    expect(log).toEqual(["SIGKILL at 0"]);
    expect(ladder.on).toBe("SIGKILL");
  });

  test("a second stop with less grace shortens the wait, one with more changes nothing", async () => {
    const { clock, ladder, log } = climbing();
    ladder.stop(1_000);
    await clock.advance(100);
    ladder.stop(5_000);
    expect(ladder.leftMs).toBe(900);
    ladder.stop(200);
    expect(ladder.leftMs).toBe(200);
    expect(clock.pending).toHaveLength(1);
    await clock.advance(200);
    expect(log).toEqual(["SIGTERM at 0", "SIGKILL at 300"]);
  });

  test("a second stop without grace sends SIGKILL at once, and only once", async () => {
    const { clock, ladder, log } = climbing();
    ladder.stop(1_000);
    ladder.stop(0);
    ladder.stop(0);
    ladder.force();
    await clock.advance(400);
    expect(log).toEqual(["SIGTERM at 0", "SIGKILL at 0"]);
  });

  test("after the end nothing is sent", async () => {
    const { clock, ladder, log } = climbing();
    ladder.stop(1_000);
    ladder.end();
    ladder.stop(0);
    await clock.advance(10_000);
    expect(log).toEqual(["SIGTERM at 0"]);
    expect(clock.pending).toEqual([]);
  });

  test("`forced` resolves when SIGKILL is sent", async () => {
    const { clock, ladder } = climbing();
    let forced = false;
    void ladder.forced.then(() => {
      forced = true;
    });
    ladder.stop(50);
    await clock.advance(49);
    expect(forced).toBe(false);
    await clock.advance(1);
    expect(forced).toBe(true);
  });

  test("the grace has a maximum, and one that is not a number counts as none", () => {
    expect(rungs(GRACE_MS_MAX * 10)[0]).toEqual({ signal: "SIGTERM", waitMs: GRACE_MS_MAX });
    expect(rungs(Number.NaN)[0].signal).toBe("SIGKILL");
    expect(rungs(-1)[0].signal).toBe("SIGKILL");
  });
});
