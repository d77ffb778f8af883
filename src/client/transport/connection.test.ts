import { expect, test } from "vitest";
import { MEMO_MS, RESEND_MS_MAX } from "../../core/limits.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { RETRY_AFTER_MS_MAX } from "../limits.ts";
import { Connection } from "./connection.ts";

/** A server that is unavailable throughout the test. */
function troubled() {
  const clock = manualClock();
  let requests = 0;
  const connection = new Connection({
    ...{ base: "http://localhost", where: "Belay", token: undefined, clock },
    chance: { key: () => "key", fraction: () => 0 },
    ...{ patienceMs: Number.POSITIVE_INFINITY, absentMs: Number.POSITIVE_INFINITY },
    fetch: async () => {
      requests += 1;
      const headers = { "retry-after": String(RETRY_AFTER_MS_MAX / 1_000) };
      return new Response('{"error":{"code":"unavailable","message":"Later."}}', { status: 503, headers });
    },
  });
  return {
    ...{ clock, connection, requests: () => requests },
    /** Lets time pass until the request has failed, or until the server has forgotten its key. */
    until: async (over: Promise<unknown>): Promise<void> => {
      let isOver = false;
      const ended = (): void => {
        isOver = true;
      };
      over.then(ended, ended);
      while (!isOver && clock.elapsed() < MEMO_MS) await clock.advance(RETRY_AFTER_MS_MAX);
    },
  };
}

test("G7: a request with a key is repeated for less time than the server remembers the key", async () => {
  const { clock, connection, requests, until } = troubled();
  const asked = connection.value({ method: "POST", path: "/v1/cancel", key: "k", attempts: "patient" });
  const stopped = connection.stop(undefined, { path: "/v1/runs/run_1/cancel", body: {}, key: "k" });
  await until(Promise.all([asked, stopped].map((one) => one.catch(() => {}))));
  expect(clock.elapsed()).toBeGreaterThanOrEqual(RESEND_MS_MAX - RETRY_AFTER_MS_MAX);
  expect(clock.elapsed()).toBeLessThan(RESEND_MS_MAX + RETRY_AFTER_MS_MAX);
  expect(RESEND_MS_MAX + RETRY_AFTER_MS_MAX).toBeLessThan(MEMO_MS);
  await expect(asked).rejects.toMatchObject({ code: "unavailable" });
  await expect(stopped).rejects.toMatchObject({ code: "unavailable" });
  expect(requests()).toBeGreaterThan(1_000);
});

test("a request without a key, which names its target, is repeated until `patienceMs`", async () => {
  const { clock, connection, until } = troubled();
  const asked = connection.value({ method: "GET", path: "/v1/outcomes", attempts: "patient" });
  await until(asked);
  expect(clock.elapsed()).toBeGreaterThanOrEqual(MEMO_MS);
  connection.close();
  await expect(asked).rejects.toMatchObject({ code: "disconnected" });
});
