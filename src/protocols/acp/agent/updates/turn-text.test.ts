import { describe, expect, test } from "vitest";
import type { Delta } from "../../../../core/model/delta.ts";
import { TurnText } from "./turn-text.ts";

type Piece = Extract<Delta, { type: "delta" }>;

const piece = (from: number, text: string): Piece => ({
  ...{ type: "delta", runId: "run_1", turnId: "turn_1.1", from, text },
});

const thought = (from: number, text: string): Piece => ({ ...piece(from, text), kind: "reasoning" });

describe("what a turn says is told once and in order", () => {
  test("as it is said; what is kept and the whole bring nothing new", () => {
    const voice = new TurnText();
    expect(voice.said(piece(0, "hello "))).toBe("hello ");
    expect(voice.said(piece(6, "there"))).toBe("there");
    expect(voice.kept("hello ")).toBe("");
    expect(voice.kept("there")).toBe("");
    expect(voice.rest("hello there")).toBe("");
  });

  test("what was kept comes first if the pieces were dropped, and later pieces are not told again", () => {
    const voice = new TurnText();
    expect(voice.kept("hello ")).toBe("hello ");
    expect(voice.said(piece(0, "hello "))).toBe("");
    expect(voice.said(piece(4, "o there"))).toBe("there");
    expect(voice.rest("hello there!")).toBe("!");
  });

  test("a piece that does not follow is not told: the whole brings it, in its place", () => {
    const voice = new TurnText();
    expect(voice.said(piece(0, "one "))).toBe("one ");
    expect(voice.said(piece(8, "three"))).toBe("");
    expect(voice.rest("one two three")).toBe("two three");
  });

  test("only the whole: it is told as a whole", () => {
    expect(new TurnText().rest("hello")).toBe("hello");
  });

  test("another text than the one that was told has no rest", () => {
    const voice = new TurnText();
    voice.said(piece(0, "hello"));
    expect(voice.rest("goodbye")).toBeUndefined();
    expect(voice.rest("hel")).toBeUndefined();
  });

  test("thoughts are counted by themselves", () => {
    const voice = new TurnText();
    expect(voice.said(thought(0, "hm"))).toBe("hm");
    expect(voice.said(piece(0, "well"))).toBe("well");
    expect(voice.thoughts([{ kind: "reasoning", text: "hmm" }])).toBe("m");
    expect(voice.rest("well")).toBe("");
  });

  test("who comes in the middle is told what is said from there on", () => {
    const voice = new TurnText(piece(6, "there"));
    expect(voice.said(piece(6, "there"))).toBe("there");
    expect(voice.rest("hello there!")).toBe("!");
  });
});

test("what is said after a call is another message, and a call before any word begins none", () => {
  const voice = new TurnText();
  voice.interrupted();
  expect(voice.message).toBe(1);
  voice.said(piece(0, "a"));
  voice.interrupted();
  voice.interrupted();
  expect(voice.message).toBe(2);
});
