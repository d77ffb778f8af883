import { describe, expect, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import type { Notice } from "../../ports/hooks.ts";
import type { Store } from "../../ports/store.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import { Gate } from "../../testing/gate.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { StoreCheck } from "./store-check.ts";

function checked(ready: Store["ready"]) {
  const clock = manualClock();
  let asked = 0;
  const counted = async (): Promise<void> => {
    asked += 1;
    await ready?.();
  };
  const store = Object.assign(new MemoryStore({ clock }), ready === undefined ? {} : { ready: counted });
  return { clock, check: new StoreCheck(store, clock), asked: () => asked };
}

describe("G28: whether the store accepts a write", () => {
  test("is assumed for a store that does not report it", async () => {
    expect(await checked(undefined).check.trouble()).toBeUndefined();
  });

  test("is the code of the store's error", async () => {
    const full = checked(() => Promise.reject(new ControlError("store_full", "The disk is full.")));
    expect(await full.check.trouble()).toBe("store_full");
    const broken = checked(() => Promise.reject(new Error("?")));
    expect(await broken.check.trouble()).toBe("internal");
  });

  test("is checked once per second for all callers", async () => {
    const { check, clock, asked } = checked(() => Promise.resolve());
    await clock.advance(60_000);
    await Promise.all([check.trouble(), check.trouble()]);
    await clock.advance(999);
    await check.trouble();
    expect(asked()).toBe(1);
    await clock.advance(1);
    await check.trouble();
    expect(asked()).toBe(2);
    expect(clock.pending).toEqual([]);
  });

  test("fails for a store that does not answer, is not checked twice at once, and recovers by itself", async () => {
    const gate = new Gate();
    const { check, clock, asked } = checked(() => gate.opened);
    const first = check.trouble();
    await clock.advance(3_000);
    expect(await first).toBe("unavailable");
    await clock.advance(1_000);
    const second = check.trouble();
    await clock.advance(3_000);
    expect(await second).toBe("unavailable");
    expect(asked()).toBe(1);
    gate.open();
    await settled();
    await clock.advance(1_000);
    expect(await check.trouble()).toBeUndefined();
    expect(asked()).toBe(2);
  });
});

describe("G28: a store that is removed while nothing is recorded", () => {
  test("is reported once, and again after it was back", async () => {
    const clock = manualClock();
    const notices: Notice[] = [];
    let lost = false;
    const inPlace = async (): Promise<void> => {
      if (lost) throw new ControlError("store_corrupt", "The file was removed.");
    };
    const check = new StoreCheck(Object.assign(new MemoryStore({ clock }), { inPlace }), clock);
    check.watch((notice) => notices.push(notice));
    const look = async (isLost: boolean): Promise<number> => {
      lost = isLost;
      for (let looks = 0; looks < 3; looks += 1) await clock.advance(2_000);
      return notices.length;
    };
    expect(await look(false)).toBe(0);
    expect(await look(true)).toBe(1);
    expect(notices).toEqual([{ type: "store", code: "store_corrupt", message: "The file was removed." }]);
    await look(false);
    expect(await look(true)).toBe(2);
    check.unwatch();
    expect(clock.pending).toEqual([]);
  });
});
