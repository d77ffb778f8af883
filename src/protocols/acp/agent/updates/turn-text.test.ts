import { describe, expect, test } from "vitest";
import type { Delta } from "../../../../core/model/delta.ts";
import { TurnText } from "./turn-text.ts";

type Piece = Extract<Delta, { type: "delta" }>;

const piece = (from: number, text: string): Piece => ({
  ...{ type: "delta", runId: "run_1", turnId: "turn_1.1", from, text },
});

const thought = (from: number, text: string): Piece => ({ ...piece(from, text), kind: "reasoning" });

describe("the text of a turn is sent once and in order", () => {
  test("as deltas; logged pieces and the complete text add nothing", () => {
    const voice = new TurnText();
    expect(voice.delta(piece(0, "hello "))).toBe("hello ");
    expect(voice.delta(piece(6, "there"))).toBe("there");
    expect(voice.logged("hello ")).toBe("");
    expect(voice.logged("there")).toBe("");
    expect(voice.rest("hello there")).toBe("");
  });

  test("logged pieces fill dropped deltas, and later deltas are not repeated", () => {
    const voice = new TurnText();
    expect(voice.logged("hello ")).toBe("hello ");
    expect(voice.delta(piece(0, "hello "))).toBe("");
    expect(voice.delta(piece(4, "o there"))).toBe("there");
    expect(voice.rest("hello there!")).toBe("!");
  });

  test("a delta after a gap is skipped: the complete text contains it in order", () => {
    const voice = new TurnText();
    expect(voice.delta(piece(0, "one "))).toBe("one ");
    expect(voice.delta(piece(8, "three"))).toBe("");
    expect(voice.rest("one two three")).toBe("two three");
  });

  test("the complete text alone is sent completely", () => {
    expect(new TurnText().rest("hello")).toBe("hello");
  });

  test("a different complete text has no rest", () => {
    const voice = new TurnText();
    voice.delta(piece(0, "hello"));
    expect(voice.rest("goodbye")).toBeUndefined();
    expect(voice.rest("hel")).toBeUndefined();
  });

  test("reasoning is counted separately", () => {
    const voice = new TurnText();
    expect(voice.delta(thought(0, "hm"))).toBe("hm");
    expect(voice.delta(piece(0, "well"))).toBe("well");
    expect(voice.thoughts([{ kind: "reasoning", text: "hmm" }])).toBe("m");
    expect(voice.rest("well")).toBe("");
  });

  test("a follower that joins in the middle gets the text from there on", () => {
    const voice = new TurnText(piece(6, "there"));
    expect(voice.delta(piece(6, "there"))).toBe("there");
    expect(voice.rest("hello there!")).toBe("!");
  });
});

test("text after a call is another message, and a call before any text starts none", () => {
  const voice = new TurnText();
  voice.afterCall();
  expect(voice.message).toBe(1);
  voice.delta(piece(0, "a"));
  voice.afterCall();
  voice.afterCall();
  expect(voice.message).toBe(2);
});
