import { expect, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import { manualClock } from "../../testing/manual-clock.ts";
import { HEARTBEAT_MS } from "../limits.ts";
import type { EventBatches } from "../routes/route-handler.ts";
import { FIRST, HEARTBEAT } from "./event-text.ts";
import { SseResponse } from "./sse-response.ts";

/** A source in the hands of the test: it counts what it is asked for. */
function source() {
  const waiting: ((step: IteratorResult<string, "complete" | "cut">) => void)[] = [];
  const state = { asked: 0, left: 0, signal: undefined as AbortSignal | undefined };
  const open = (signal: AbortSignal): EventBatches => {
    state.signal = signal;
    return {
      next: () => {
        state.asked += 1;
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

function pour(given: ReturnType<typeof source> = source()) {
  const clock = manualClock();
  const ended: unknown[] = [];
  const failures: unknown[] = [];
  const stream = new SseResponse({
    source: given.open,
    clock,
    failed: (failure) => failures.push(failure),
    ended: () => ended.push("ended"),
  });
  const take = async (): Promise<string | undefined> => {
    const { done, value } = await stream.next();
    return done === true ? undefined : (value ?? undefined);
  };
  return { ...given, clock, stream, ended, failures, take };
}

test("it begins by saying how to come back, and asks its source for nothing before it is asked", async () => {
  const { take, state } = pour();
  expect(await take()).toBe(FIRST);
  expect(state.asked).toBe(0);
});

test("one piece is asked for at a time, and none while the reader takes none", async () => {
  const { take, say, state, clock } = pour();
  await take();
  const first = take();
  say("one\n\n");
  expect(await first).toBe("one\n\n");
  await clock.advance(10 * HEARTBEAT_MS);
  expect(state.asked).toBe(1);
});

test("a reader that waits hears a heartbeat every 15 s, and then still the piece it waited for", {
  meta: { id: "http/heartbeat-every-fifteen-seconds" },
}, async () => {
  const { take, say, state, clock } = pour();
  await take();
  const first = take();
  await clock.advance(HEARTBEAT_MS);
  expect(await first).toBe(HEARTBEAT);
  const second = take();
  await clock.advance(HEARTBEAT_MS);
  expect(await second).toBe(HEARTBEAT);
  say("late\n\n");
  expect(await take()).toBe("late\n\n");
  expect(state.asked).toBe(1);
});

test("a piece that comes while a heartbeat is being taken is not lost", async () => {
  const { take, say, clock } = pour();
  await take();
  const beat = take();
  clock.tick(HEARTBEAT_MS);
  say("meanwhile\n\n");
  expect(await beat).toBe(HEARTBEAT);
  expect(await take()).toBe("meanwhile\n\n");
});

test("when its source is complete it ends without a word", async () => {
  const { take, end, ended, clock } = pour();
  await take();
  const last = take();
  end("complete");
  expect(await last).toBeUndefined();
  expect(ended).toEqual(["ended"]);
  expect(clock.pending).toEqual([]);
});

test("when its source was cut it says goodbye, so that the reader comes back", async () => {
  const { take, end, ended } = pour();
  await take();
  const last = take();
  end("cut");
  expect(await last).toBe('event: bye\ndata: {"reason":"shutting_down"}\n\n');
  expect(await take()).toBeUndefined();
  expect(ended).toEqual(["ended"]);
});

test("when its source fails the reader learns the code and nothing else, and the server learns the rest", async () => {
  const trouble = new ControlError("unavailable", "The disk at /dev/sda1 is gone.");
  const failing: EventBatches = {
    next: () => Promise.reject(trouble),
    return: async () => ({ done: true, value: "cut" }),
  };
  const { take, failures, ended } = pour({ ...source(), open: () => failing });
  await take();
  expect(await take()).toBe('event: bye\ndata: {"reason":"unavailable"}\n\n');
  expect(await take()).toBeUndefined();
  expect(failures).toEqual([trouble]);
  expect(ended).toEqual(["ended"]);
});

test("a reader that leaves ends it at once, also while it waits, and everything is given back", async () => {
  const { take, stream, state, ended, clock } = pour();
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

test("whoever asked being gone ends it, before or after it was opened", async () => {
  const gone = new AbortController();
  const later = pour();
  later.stream.endWith(gone.signal);
  await later.take();
  const waiting = later.take();
  gone.abort();
  expect(await waiting).toBeUndefined();
  const atOnce = pour();
  atOnce.stream.endWith(gone.signal);
  expect(await atOnce.take()).toBeUndefined();
  expect([later.ended, atOnce.ended]).toEqual([["ended"], ["ended"]]);
});

test.each([
  ["before its first word", 0],
  ["while the reader waits", 1],
])("the server ends it %s with a last word", async (_, taken) => {
  const { take, stream, state, ended } = pour();
  for (let piece = 0; piece < taken; piece += 1) await take();
  const waiting = take();
  stream.close("shutting_down");
  const said = (await waiting) ?? "";
  const rest = taken === 0 ? ((await take()) ?? "") : "";
  expect(said + rest).toBe(`${taken === 0 ? FIRST : ""}event: bye\ndata: {"reason":"shutting_down"}\n\n`);
  expect(state.signal?.aborted).toBe(true);
  expect(await take()).toBeUndefined();
  expect(ended).toEqual(["ended"]);
});

test("an event in slices is not interrupted by a heartbeat, and a shutdown there ends without a word", async () => {
  const { take, say, stream, ended, clock } = pour();
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
