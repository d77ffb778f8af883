import { describe, expect, it } from "vitest";
import type { Event } from "../core/event.ts";
import { emptyLane, evolve } from "../core/lane.ts";
import { decodeLane, encodeLane } from "./lane.ts";

describe("a snapshot", () => {
  it("gives back the lane, fields that are undefined included", () => {
    const events: readonly Event[] = [
      { type: "session.created", sessionId: "ses_1" },
      { type: "run.accepted", runId: "run_1", prompt: { text: "one" }, delivery: "queue" },
      {
        type: "run.accepted",
        runId: "run_2",
        prompt: { text: "two", data: 2 },
        delivery: "queue",
        key: "k",
        content: "c",
      },
      { type: "run.accepted", runId: "run_3", prompt: { text: "three" }, delivery: "queue" },
      { type: "run.started", runId: "run_1" },
      { type: "run.steered", runId: "run_3" },
    ];
    const lane = events.reduce(evolve, emptyLane("ses_1"));
    expect(lane.live).toHaveProperty("turn", undefined);
    expect(decodeLane(encodeLane(lane, lane.head))).toStrictEqual(lane);
    expect(decodeLane(encodeLane(emptyLane("ses_1"), 0))).toStrictEqual(emptyLane("ses_1"));
  });

  it("is a bug if it is of another position", () => {
    expect(() => encodeLane(emptyLane("ses_1"), 1)).toThrow("snapshot");
  });

  it("is refused as newer if a newer Belay wrote it", () => {
    expect(() => decodeLane('{"v":2,"lane":{}}')).toThrow(expect.objectContaining({ code: "store_newer" }));
  });

  it.each(["null", "[]", "{}", '{"v":1}', '{"v":1,"lane":{"queue":[]}}', "{"])(
    "is refused as corrupt if it is none: %s",
    (text) => {
      expect(() => decodeLane(text)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
    },
  );
});
