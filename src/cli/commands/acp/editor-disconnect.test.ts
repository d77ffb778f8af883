import { expect, test } from "vitest";
import type { SessionId } from "../../../core/model/ids.ts";
import type { RunControl } from "../../../ports/control.ts";
import { manualClock } from "../../../testing/manual-clock.ts";
import { type AtEnd, EditorDisconnect, EXIT_MS_MAX } from "./editor-disconnect.ts";

const never = new Promise<void>(() => {});

function stage({ policy = "cancel", answered = Promise.resolve() }: { policy?: AtEnd; answered?: Promise<void> } = {}) {
  const clock = manualClock();
  const said: string[] = [];
  const log = { info: (text: string) => void said.push(text), warn: (text: string) => void said.push(text) };
  const end = new EditorDisconnect({ policy, kept: "kept somewhere", answered: () => answered, log, clock });
  return { clock, said, end };
}

/** A run that takes a cancel, and remembers why. */
function cancellable() {
  const reasons: unknown[] = [];
  const cancel: RunControl["cancel"] = async (options) => {
    reasons.push(options?.reason);
    return { kind: "stopping", first: true, since: 1 };
  };
  const run = (sessionId: SessionId) => ({ sessionId, cancel }) as Partial<RunControl> as RunControl;
  return { reasons, run: run("ses_1"), other: run("ses_2") };
}

test("cancel: each run is cancelled with a reason, and its answer waited for", async () => {
  const { end, said, clock } = stage();
  const { run, other, reasons } = cancellable();
  const answered = Promise.withResolvers<void>();
  const coming = end.come({ runs: [run, other], settled: () => answered.promise });
  await clock.advance(1_000);
  expect(reasons).toEqual([1, 2].map(() => ({ kind: "policy", note: "The editor is gone." })));
  answered.resolve();
  await coming;
  expect(said).toEqual(["the editor is gone; 2 runs of it had not ended: cancelled"]);
  expect(clock.pending).toEqual([]);
});

test("cancel: what does not stop is waited for no longer than leaves time to close", async () => {
  const { end, said, clock } = stage({ answered: never });
  const coming = end.come({ runs: [cancellable().run], settled: () => never });
  await clock.advance(EXIT_MS_MAX);
  await coming;
  expect(said.at(-1)).toBe("some of it had not stopped in time");
});

test("the less time is left, the less is given to closing, and never none", async () => {
  const { end, clock } = stage();
  expect(end.leftMs).toBe(EXIT_MS_MAX / 2);
  await end.come({ runs: [], settled: async () => {} });
  await clock.advance(1_000);
  expect(end.leftMs).toBe((EXIT_MS_MAX - 1_000) / 2);
  await clock.advance(10_000);
  expect(end.leftMs).toBe(200);
});

test("keep: nothing is cancelled, and it is said what becomes of the runs", async () => {
  const { end, said } = stage({ policy: "keep" });
  const { run, reasons } = cancellable();
  await end.come({ runs: [run], settled: () => never });
  expect(reasons).toEqual([]);
  expect(said).toEqual(["the editor is gone; 1 run of it had not ended: kept somewhere"]);
});

test("keep: what was asked last is answered before it leaves, for a moment", async () => {
  const { end, clock } = stage({ policy: "keep", answered: never });
  let left = false;
  const coming = end.come({ runs: [], settled: () => never }).then(() => {
    left = true;
  });
  await clock.advance(299);
  expect(left).toBe(false);
  await clock.advance(1);
  await coming;
});
