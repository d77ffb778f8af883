import { describe, expect, it } from "vitest";
import type { Event } from "../core/model/event.ts";
import { decodeEvents, decodeOutcome, encodeEvents, encodeOutcome } from "./event.ts";

const events: readonly Event[] = [
  { type: "run.accepted", runId: "run_1", prompt: { text: "hi", data: [null, 1.5, { a: "b" }] }, delivery: "steer" },
  { type: "run.started", runId: "run_1" },
  { type: "run.settled", runId: "run_1", outcome: { kind: "lost" } },
  { type: "process.requested", processId: "proc_1.1", owner: "ses_1", command: ["make"], feedback: "wake" },
  { type: "process.started", processId: "proc_1.1", pid: 7, tier: "A", profile: "open" },
  { type: "process.detached", processId: "proc_1.1", owner: "ses_1", feedback: "silent" },
  { type: "process.cancel_requested", processId: "proc_1.1", reason: { kind: "user" } },
  { type: "process.settled", processId: "proc_1.1", outcome: { kind: "completed" }, exit: { code: 3 } },
  { type: "session.mode_set", mode: "read-only", by: "ann" },
  { type: "inbox.added", item: { kind: "result", text: "x" }, processId: "proc_1.1", heldBy: "call_1.1", wake: true },
];

describe("the encoding of an append", () => {
  it("returns its events with their positions and time", () => {
    const read = decodeEvents(encodeEvents(events), 7, 99);
    expect(read).toStrictEqual(events.map((event, index) => ({ ...event, seq: 7 + index, at: 99 })));
  });

  it("begins with its version", () => {
    expect(encodeEvents(events)).toMatch(/^\[1,\{"type":"run\.accepted"/);
    expect(decodeEvents(encodeEvents([]), 1, 0)).toEqual([]);
  });

  it("is well-formed even if an event contains a lone surrogate", () => {
    const text = encodeEvents([{ type: "turn.extended", runId: "run_1", turnId: "turn_1.1", text: "\ud800" }]);
    expect(text.isWellFormed()).toBe(true);
    expect(decodeEvents(text, 1, 0)[0]).toMatchObject({ text: "\ud800" });
  });

  it("of a newer Belay is refused as newer and never read in part", {
    meta: { id: "G37/newer-event-refused" },
  }, () => {
    expect(() => decodeEvents('[2,{"type":"run.started","runId":"run_1"}]', 1, 0)).toThrow(
      expect.objectContaining({ code: "store_newer" }),
    );
  });

  it.each([
    "",
    "{}",
    "[]",
    "[0]",
    '["1"]',
    "[1,null]",
    '[1,{"type":"run.invented"}]',
    '[1,{"type":7}]',
    '[1,{"type":"toString"}]',
  ])("is refused as corrupt if no version of Belay writes it: %s", (text) => {
    expect(() => decodeEvents(text, 1, 0)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
  });
});

describe("the encoding of an outcome", () => {
  it("returns the outcome", () => {
    const outcome = { kind: "cancelled", reason: { kind: "user", note: "\udfff" }, abandoned: ["turn"] } as const;
    expect(decodeOutcome(encodeOutcome(outcome))).toStrictEqual(outcome);
  });

  it.each(["null", "[]", "{}", "{"])("is refused as corrupt if it is invalid: %s", (text) => {
    expect(() => decodeOutcome(text)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
  });
});
