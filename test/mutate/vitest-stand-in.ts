// What a test file gets when it asks for the test framework during the hunt for mutants.
import { expect, vi } from "vitest";

export { assert, chai, expectTypeOf } from "vitest";
export {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  onTestFinished,
  test,
  test as it,
} from "./collected-tests.ts";
export { expect, vi };

/** The framework's own needs its runner. Asks again in every round of the event loop, until it agrees or time is up. */
const POLL_MS_MAX = 5_000;

Object.assign(expect, {
  poll: (ask: () => unknown) =>
    new Proxy(
      {},
      {
        get:
          (_, matcher) =>
          (...given: readonly unknown[]) =>
            agree(ask, matcher, given),
      },
    ),
});

async function agree(ask: () => unknown, matcher: string | symbol, given: readonly unknown[]): Promise<void> {
  const until = performance.now() + POLL_MS_MAX;
  for (;;) {
    try {
      const expectation = expect(await ask());
      Reflect.apply(Reflect.get(expectation, matcher), expectation, given);
      return;
    } catch (error) {
      if (performance.now() > until) throw error;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }
}
