// The signal handlers of a process while Belays are open in it, and afterwards.
import { expect, test } from "vitest";
import { openTestBelay } from "../../test/fixtures/belay.ts";
import { closeOnSignals } from "./signals.ts";

const handlers = (): number => process.listenerCount("SIGTERM") + process.listenerCount("SIGINT");

test("G33: thirty Belays share one handler for each signal, and the last one to close removes it", async () => {
  const before = handlers();
  const belays = await Promise.all(Array.from({ length: 30 }, async () => (await openTestBelay()).belay));
  for (const belay of belays) closeOnSignals(belay);
  expect(handlers() - before).toBe(2);
  const [last, ...others] = belays;
  await Promise.all(others.map((belay) => belay.close()));
  expect(handlers() - before).toBe(2);
  await last?.close();
  await last?.closed;
  expect(handlers()).toBe(before);
});

test("the returned function removes the handlers, and may be called twice", async () => {
  const before = handlers();
  const [one, other] = [(await openTestBelay()).belay, (await openTestBelay()).belay];
  const [forgetOne, forgetOther] = [closeOnSignals(one), closeOnSignals(other)];
  forgetOne();
  forgetOne();
  expect(handlers() - before).toBe(2);
  forgetOther();
  expect(handlers()).toBe(before);
  closeOnSignals(one);
  expect(handlers() - before).toBe(2);
  await Promise.all([one.close(), other.close()]);
  expect(handlers()).toBe(before);
});
