// The deltas that wait for one follower: bounded, and constant time for each.
import { describe, expect, test } from "vitest";
import { arrayWork } from "../../../test/fixtures/array-work.ts";
import { DELTA_BYTES_MAX, DELTA_MERGED_BYTES } from "../../core/limits.ts";
import type { Delta } from "../../core/model/delta.ts";
import { heapBytes } from "../../core/size.ts";
import { DeltaBuffer } from "./delta-buffer.ts";

const delta = (text: string, turn = 1, from = 0): Delta => ({
  ...({ type: "delta", runId: "run_a", turnId: `turn_a.${turn}` } as const),
  ...{ text, from },
});
const textOf = (one: Delta): string => (one.type === "delta" ? one.text : "");

/** Emits text in pieces of `chars` characters, one after the other, as a model does. */
function emit(buffer: DeltaBuffer, pieces: number, chars = 4): string {
  let said = "";
  for (let index = 0; index < pieces; index += 1) {
    const text = String(index % 10_000).padStart(chars, ".");
    buffer.add(delta(text, 1, said.length), 1);
    said += text;
  }
  return said;
}

describe("G31: a follower that does not read", () => {
  test("keeps the latest deltas within its limit, and counts the others", () => {
    const buffer = new DeltaBuffer();
    const piece = "x".repeat(1024);
    const added = 10 * (DELTA_BYTES_MAX / (piece.length * 2));
    for (let index = 0; index < added; index += 1) buffer.add(delta(piece), 1);
    buffer.add(delta("last"), 1);
    const kept = buffer.take();
    expect(heapBytes(kept)).toBeLessThanOrEqual(DELTA_BYTES_MAX);
    expect(kept.length + buffer.dropped).toBe(added + 1);
    expect(kept.map(textOf).at(-1)).toBe("last");
    expect(buffer.take()).toEqual([]);
  });

  test("costs each delta constant time, however many wait", () => {
    const buffer = new DeltaBuffer();
    const added = 20_000;
    // From another position each time: no delta continues the one before it.
    const work = arrayWork(() => {
      for (let index = 0; index < added; index += 1) buffer.add(delta("x".repeat(100), 1, 1_000 * index), 1);
    });
    expect(buffer.dropped).toBeGreaterThan(added / 2);
    expect(work).toBeLessThan(4 * added);
  });

  test("takes the deltas before many events in time that grows with their number", () => {
    const buffer = new DeltaBuffer();
    for (let seq = 1; seq <= 500; seq += 1) buffer.add(delta("piece", 1, 1_000 * seq), seq);
    const work = arrayWork(() => {
      for (let seq = 1; seq <= 500; seq += 1) buffer.take(seq + 1);
    });
    expect(buffer.empty).toBe(true);
    expect(work).toBeLessThan(4 * 500);
  });

  test("has small adjacent deltas merged, so that they take little more than their text", () => {
    const buffer = new DeltaBuffer();
    const said = emit(buffer, 10_000);
    const kept = buffer.take();
    expect(kept.map(textOf).join("")).toBe(said);
    expect(kept.length).toBeLessThan(200);
    expect(heapBytes(kept)).toBeLessThanOrEqual(DELTA_BYTES_MAX);
    expect(buffer.dropped).toBe(0);
    for (const [index, one] of kept.entries()) {
      const before = kept.slice(0, index).map(textOf).join("").length;
      expect(one).toMatchObject({ type: "delta", runId: "run_a", turnId: "turn_a.1", from: before });
      expect(2 * textOf(one).length).toBeLessThanOrEqual(DELTA_MERGED_BYTES);
    }
  });

  test("counts every delta of a merged piece that is dropped", () => {
    const buffer = new DeltaBuffer();
    const said = emit(buffer, 100_000);
    const kept = buffer.take().map(textOf).join("");
    expect(said.endsWith(kept)).toBe(true);
    expect(kept.length / 4 + buffer.dropped).toBe(100_000);
  });

  test("has nothing merged across turns, kinds, events or gaps", () => {
    const buffer = new DeltaBuffer();
    for (let index = 0; index < 64; index += 1) buffer.add(delta("x", 9, 2 * index), 1);
    const reasoning: Delta = {
      type: "delta",
      runId: "run_a",
      turnId: "turn_a.1",
      text: "c",
      from: 2,
      kind: "reasoning",
    };
    const progress: Delta = { type: "progress", runId: "run_a", callId: "call_a.1", data: 1 };
    const apart = [
      [delta("a", 1, 0), 1],
      [delta("b", 2, 1), 1],
      [reasoning, 1],
      [delta("d", 1, 3), 1],
      [delta("e", 1, 4), 2],
      [delta("f", 1, 9), 2],
      [progress, 2],
    ] as const;
    for (const [one, at] of apart) buffer.add(one, at);
    expect(buffer.take().slice(64)).toEqual(apart.map(([one]) => one));
  });
});

test("a fast follower gets every delta as it was emitted", () => {
  const buffer = new DeltaBuffer();
  for (let index = 0; index < 200; index += 1) {
    const pieces = [delta("a", 1, 2 * index), delta("b", 1, 2 * index + 1)];
    for (const piece of pieces) buffer.add(piece, 1);
    expect(buffer.take()).toEqual(pieces);
  }
});

test("G31: a single delta larger than the limit is dropped", () => {
  const buffer = new DeltaBuffer();
  buffer.add(delta("x".repeat(DELTA_BYTES_MAX)), 1);
  expect(buffer.take()).toEqual([]);
  expect(buffer.dropped).toBe(1);
});

test("G31: taken and forgotten deltas make room; the others still count", () => {
  const buffer = new DeltaBuffer();
  const nearHalf = (turn: number) => delta(String(turn).repeat(DELTA_BYTES_MAX / 4 - 200), turn);
  buffer.add(nearHalf(1), 1);
  buffer.add(nearHalf(2), 2);
  expect(buffer.take(2)).toEqual([nearHalf(1)]);
  buffer.add(nearHalf(3), 2);
  expect(buffer.dropped).toBe(0);
  buffer.add(nearHalf(4), 2);
  expect(buffer.dropped).toBe(1);
  buffer.forget(new Set(["turn_a.3"]));
  buffer.add(nearHalf(5), 2);
  expect(buffer.take()).toEqual([nearHalf(4), nearHalf(5)]);
  expect(buffer.dropped).toBe(1);
});

test("deltas of a turn that is in the log by now are dropped; those of other turns are kept", () => {
  const buffer = new DeltaBuffer();
  const progress: Delta = { type: "progress", runId: "run_a", callId: "call_a.1", data: 1 };
  for (const one of [delta("old", 1), progress, delta("new", 2)]) buffer.add(one, 1);
  buffer.forget(new Set(["turn_a.1", "turn_a.7"]));
  expect(buffer.take()).toEqual([progress, delta("new", 2)]);
});

test("a delta comes between the events between which it was emitted", () => {
  const buffer = new DeltaBuffer();
  buffer.add(delta("first"), 4);
  buffer.add(delta("second"), 5);
  expect(buffer.take(4)).toEqual([]);
  expect(buffer.take(5)).toEqual([delta("first")]);
  expect(buffer.take()).toEqual([delta("second")]);
});
