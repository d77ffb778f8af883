import { expect, test } from "vitest";
import type { SessionId } from "../../../core/model/ids.ts";
import type { RunControl } from "../../../ports/control.ts";
import { manualClock } from "../../../testing/manual-clock.ts";
import { type AtEnd, EditorDisconnect, EXIT_MS_MAX } from "./editor-disconnect.ts";

const never = new Promise<void>(() => {});

function disconnect({
  policy = "cancel",
  answered = Promise.resolve(),
}: {
  policy?: AtEnd;
  answered?: Promise<void>;
} = {}) {
  const clock = manualClock();
  const messages: string[] = [];
  const log = { info: (text: string) => void messages.push(text), warn: (text: string) => void messages.push(text) };
  const end = new EditorDisconnect({ policy, kept: "kept somewhere", answered: () => answered, log, clock });
  return { clock, messages, end };
}

/** Two runs that record the reasons of their cancels. */
function cancellable() {
  const reasons: unknown[] = [];
  const cancel: RunControl["cancel"] = async (options) => {
    reasons.push(options?.reason);
    return { kind: "stopping", first: true, since: 1 };
  };
  const run = (sessionId: SessionId) => ({ sessionId, cancel }) as Partial<RunControl> as RunControl;
  return { reasons, run: run("ses_1"), other: run("ses_2") };
}

test("cancel: each run is cancelled with a reason, and its outcome is waited for", async () => {
  const { end, messages, clock } = disconnect();
  const { run, other, reasons } = cancellable();
  const answered = Promise.withResolvers<void>();
  const handled = end.handle({ runs: [run, other], settled: () => answered.promise });
  await clock.advance(1_000);
  expect(reasons).toEqual([1, 2].map(() => ({ kind: "policy", note: "The editor is gone." })));
  answered.resolve();
  await handled;
  expect(messages).toEqual(["the editor is gone; 2 runs of it had not ended: cancelled"]);
  expect(clock.pending).toEqual([]);
});

test("cancel: the wait for runs that do not stop ends in time for closing", async () => {
  const { end, messages, clock } = disconnect({ answered: never });
  const handled = end.handle({ runs: [cancellable().run], settled: () => never });
  await clock.advance(EXIT_MS_MAX);
  await handled;
  expect(messages.at(-1)).toBe("some of it had not stopped in time");
});

test("the time for closing is half of what is left, and at least 200 ms", async () => {
  const { end, clock } = disconnect();
  expect(end.leftMs).toBe(EXIT_MS_MAX / 2);
  await end.handle({ runs: [], settled: async () => {} });
  await clock.advance(1_000);
  expect(end.leftMs).toBe((EXIT_MS_MAX - 1_000) / 2);
  await clock.advance(10_000);
  expect(end.leftMs).toBe(200);
});

test("keep: no run is cancelled, and the log says what happens to them", async () => {
  const { end, messages } = disconnect({ policy: "keep" });
  const { run, reasons } = cancellable();
  await end.handle({ runs: [run], settled: () => never });
  expect(reasons).toEqual([]);
  expect(messages).toEqual(["the editor is gone; 1 run of it had not ended: kept somewhere"]);
});

test("keep: pending requests get 300 ms to be answered", async () => {
  const { end, clock } = disconnect({ policy: "keep", answered: never });
  let left = false;
  const handled = end.handle({ runs: [], settled: () => never }).then(() => {
    left = true;
  });
  await clock.advance(299);
  expect(left).toBe(false);
  await clock.advance(1);
  await handled;
});
