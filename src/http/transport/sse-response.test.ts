import { expect, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { HEARTBEAT_MS } from "../limits.ts";
import type { EventBatches } from "../routes/route-handler.ts";
import { FIRST, HEARTBEAT } from "./event-text.ts";
import { SseResponse } from "./sse-response.ts";

/** A source that the test controls, and that counts its reads. */
function source() {
  const waiting: ((step: IteratorResult<string, "complete" | "cut">) => void)[] = [];
  const state = { reads: 0, left: 0, signal: undefined as AbortSignal | undefined };
  const open = (signal: AbortSignal): EventBatches => {
    state.signal = signal;
    return {
      next: () => {
        state.reads += 1;
        return new Promise((resolve) => waiting.push(resolve));
      },
      return: async () => {
        state.left += 1;
        return { done: true, value: "cut" };
      },
    };
  };
  return {
    state,
    open,
    say: (text: string) => waiting.shift()?.({ done: false, value: text }),
    end: (how: "complete" | "cut") => waiting.shift()?.({ done: true, value: how }),
  };
}

function open(given: ReturnType<typeof source> = source()) {
  const clock = manualClock();
  const ended: unknown[] = [];
  const failures: unknown[] = [];
  const stream = new SseResponse({
    source: given.open,
    clock,
    onError: (error) => failures.push(error),
    onEnd: () => ended.push("ended"),
  });
  const take = async (): Promise<string | undefined> => {
    const { done, value } = await stream.next();
    return done === true ? undefined : (value ?? undefined);
  };
  return { ...given, clock, stream, ended, failures, take };
}

test("it starts with the reconnection delay, and reads its source only when it is read", async () => {
  const { take, state } = open();
  expect(await take()).toBe(FIRST);
  expect(state.reads).toBe(0);
});

test("one piece is read at a time, and none while the reader does not read", async () => {
  const { take, say, state, clock } = open();
  await take();
  const first = take();
  say("one\n\n");
  expect(await first).toBe("one\n\n");
  await clock.advance(10 * HEARTBEAT_MS);
  expect(state.reads).toBe(1);
});

test("a waiting reader gets a heartbeat every 15 s, and then the piece that it waited for", {
  meta: { id: "http/heartbeat-every-fifteen-seconds" },
}, async () => {
  const { take, say, state, clock } = open();
  await take();
  const first = take();
  await clock.advance(HEARTBEAT_MS);
  expect(await first).toBe(HEARTBEAT);
  const second = take();
  await clock.advance(HEARTBEAT_MS);
  expect(await second).toBe(HEARTBEAT);
  say("late\n\n");
  expect(await take()).toBe("late\n\n");
  expect(state.reads).toBe(1);
});

test("a piece that arrives while a heartbeat is being read is not lost", async () => {
  const { take, say, clock } = open();
  await take();
  const beat = take();
  clock.tick(HEARTBEAT_MS);
  say("meanwhile\n\n");
  expect(await beat).toBe(HEARTBEAT);
  expect(await take()).toBe("meanwhile\n\n");
});

test("it ends without `bye` when its source is complete", async () => {
  const { take, end, ended, clock } = open();
  await take();
  const last = take();
  end("complete");
  expect(await last).toBeUndefined();
  expect(ended).toEqual(["ended"]);
  expect(clock.pending).toEqual([]);
});

test("it ends with `bye` when its source was cut, so that the reader reconnects", async () => {
  const { take, end, ended } = open();
  await take();
  const last = take();
  end("cut");
  expect(await last).toBe('event: bye\ndata: {"reason":"shutting_down"}\n\n');
  expect(await take()).toBeUndefined();
  expect(ended).toEqual(["ended"]);
});

test("when its source fails, the reader gets only the code, and the server gets the error", async () => {
  const trouble = new ControlError("unavailable", "The disk at /dev/sda1 is gone.");
  const failing: EventBatches = {
    next: () => Promise.reject(trouble),
    return: async () => ({ done: true, value: "cut" }),
  };
  const { take, failures, ended } = open({ ...source(), open: () => failing });
  await take();
  expect(await take()).toBe('event: bye\ndata: {"reason":"unavailable"}\n\n');
  expect(await take()).toBeUndefined();
  expect(failures).toEqual([trouble]);
  expect(ended).toEqual(["ended"]);
});

test("it ends when its reader leaves, even while it waits, and releases everything", async () => {
  const { take, stream, state, ended, clock } = open();
  await take();
  const waiting = take();
  await stream.return();
  expect(await waiting).toBeUndefined();
  expect(state.signal?.aborted).toBe(true);
  expect(state.left).toBe(1);
  expect(clock.pending).toEqual([]);
  await stream.return();
  expect(ended).toEqual(["ended"]);
});

test("it ends when the client disconnects, before or after it was opened", async () => {
  const gone = new AbortController();
  const later = open();
  later.stream.endWith(gone.signal);
  await later.take();
  const waiting = later.take();
  gone.abort();
  expect(await waiting).toBeUndefined();
  const atOnce = open();
  atOnce.stream.endWith(gone.signal);
  expect(await atOnce.take()).toBeUndefined();
  expect([later.ended, atOnce.ended]).toEqual([["ended"], ["ended"]]);
});

test.each([
  ["before its first piece", 0],
  ["while the reader waits", 1],
])("the server ends it %s with `bye`", async (_, taken) => {
  const { take, stream, state, ended } = open();
  for (let piece = 0; piece < taken; piece += 1) await take();
  const waiting = take();
  stream.close("shutting_down");
  const first = (await waiting) ?? "";
  const rest = taken === 0 ? ((await take()) ?? "") : "";
  expect(first + rest).toBe(`${taken === 0 ? FIRST : ""}event: bye\ndata: {"reason":"shutting_down"}\n\n`);
  expect(state.signal?.aborted).toBe(true);
  expect(await take()).toBeUndefined();
  expect(ended).toEqual(["ended"]);
});

test("no heartbeat interrupts the slices of an event, and a shutdown there ends without `bye`", async () => {
  const { take, say, stream, ended, clock } = open();
  await take();
  const slice = take();
  say("id: 1\nevent: a\ndata: {");
  expect(await slice).toBe("id: 1\nevent: a\ndata: {");
  let beaten = false;
  const rest = take().finally(() => {
    beaten = true;
  });
  await clock.advance(2 * HEARTBEAT_MS);
  expect(beaten).toBe(false);
  stream.close("shutting_down");
  expect(await rest).toBeUndefined();
  expect(ended).toEqual(["ended"]);
});
