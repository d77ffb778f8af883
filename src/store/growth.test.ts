import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { Growth } from "./growth.ts";

it("a waiter that has resolved leaves no listener on its signal", {
  meta: { id: "store/answered-waiter-unsubscribed" },
}, async () => {
  const growth = new Growth();
  const { signal } = new AbortController();
  const waiting = Array.from({ length: 20 }, () => growth.wait("ses_a", 0, signal));
  expect(getEventListeners(signal, "abort")).toHaveLength(20);
  growth.note("ses_a", 1);
  await Promise.all(waiting);
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

it("a waiter that leaves does not affect others", async () => {
  const growth = new Growth();
  const abort = new AbortController();
  const gone = growth.wait("ses_a", 0, abort.signal);
  const stays = growth.wait("ses_a", 1, new AbortController().signal);
  abort.abort();
  await gone;
  growth.note("ses_a", 2);
  await stays;
});

it("a repeated notification is harmless, and one of a known position wakes no waiter", async () => {
  const growth = new Growth();
  const abort = new AbortController();
  let woken = 0;
  const first = growth.wait("ses_a", 1, abort.signal).then(() => {
    woken += 1;
  });
  growth.note("ses_a", 1);
  await Promise.resolve();
  expect(woken).toBe(0);
  growth.note("ses_a", 2);
  growth.note("ses_a", 2);
  await first;
  expect(woken).toBe(1);
});
