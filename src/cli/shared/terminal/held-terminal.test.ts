// The keys that answer a question at a terminal, for every order of typing and painting.
import { EventEmitter } from "node:events";
import { describe, expect, test } from "vitest";
import { manualClock } from "../../../testing/manual-clock.ts";
import { type Ask, HeldTerminal, PAINT_MS, QUIET_MS } from "./held-terminal.ts";

const PAINTED = "\u001b[0n";

class Keys extends EventEmitter {
  raw = false;
  setRawMode(on: boolean): void {
    this.raw = on;
  }
  resume(): void {}
  pause(): void {}
  type(text: string): void {
    this.emit("data", Buffer.from(text));
  }
}

function openTerminal() {
  const [input, clock] = [new Keys(), manualClock()];
  const [written, signals]: [string[], string[]] = [[], []];
  let late = "";
  const held = new HeldTerminal({
    ...{ input, clock, output: { write: (text) => written.push(text) } },
    // Keys that were pressed while the event loop was blocked are read after its timers.
    afterReads: async () => {
      if (late !== "") input.type(late);
      late = "";
    },
    signal: (signal) => signals.push(signal),
  });
  const ask = (over: Partial<Ask> = {}) =>
    held.ask({
      about: () => "ABOUT\n",
      prompt: "PROMPT ",
      paste: "dropped",
      signal: new AbortController().signal,
      ...over,
    });
  return {
    input,
    clock,
    held,
    ask,
    signals,
    screen: () => written.join(""),
    pressedWhileBusy: (t: string) => (late = t),
  };
}

describe("keys that do not answer the question", () => {
  test("keys typed before, during and shortly after the painting are dropped; the prompt follows a pause", async () => {
    const { input, clock, ask, screen } = openTerminal();
    input.type("y\r");
    const answer = ask();
    input.type("y\r");
    input.type(`y\r${PAINTED}y\r`);
    await clock.advance(QUIET_MS - 1);
    input.type("y\r");
    await clock.advance(QUIET_MS - 1);
    expect(screen()).not.toContain("PROMPT");
    await clock.advance(1);
    expect(screen()).toContain("PROMPT");
    input.type("no\r");
    expect(await answer).toBe("no");
  });

  test("keys that a blocked program reads after its timer restart the wait", async () => {
    const { input, clock, ask, screen, pressedWhileBusy } = openTerminal();
    const answer = ask();
    input.type(PAINTED);
    pressedWhileBusy("y\r");
    await clock.advance(QUIET_MS);
    expect(screen()).not.toContain("PROMPT");
    await clock.advance(QUIET_MS);
    input.type("fine\r");
    expect(await answer).toBe("fine");
  });

  test("the paint report of a withdrawn question does not count for the next one", async () => {
    const { input, clock, ask, screen } = openTerminal();
    const withdrawn = new AbortController();
    const first = ask({ signal: withdrawn.signal });
    withdrawn.abort();
    expect(await first).toBeUndefined();
    void ask();
    input.type(PAINTED);
    await clock.advance(QUIET_MS);
    expect(screen()).not.toContain("PROMPT");
    input.type(PAINTED);
    await clock.advance(QUIET_MS);
    expect(screen()).toContain("PROMPT");
  });

  test("a terminal that never reports counts as painted after a timeout", async () => {
    const { input, clock, ask } = openTerminal();
    const answer = ask();
    await clock.advance(PAINT_MS);
    await clock.advance(QUIET_MS);
    input.type("ok\r");
    expect(await answer).toBe("ok");
  });

  test("split escape sequences are not taken for text; pasted text is dropped or taken by the option", async () => {
    const { input, clock, ask } = openTerminal();
    const open = async (over: Partial<Ask>): Promise<{ readonly answer: Promise<string | undefined> }> => {
      const answer = ask(over);
      input.type("\u001b[");
      input.type("0n");
      await clock.advance(QUIET_MS);
      return { answer };
    };
    const dropped = await open({});
    for (const piece of ["\u001b", "[A", "\u001b[20", "0~pasted\r", "\u001b[201~", "oq\u007fk\r"]) input.type(piece);
    expect(await dropped.answer).toBe("ok");
    const taken = await open({ paste: "taken" });
    input.type("\u001b[200~two\rlines\u001b[201~\r");
    expect(await taken.answer).toBe("twolines");
  });
});

describe("G36: a terminal that changes its size", () => {
  test("drops the typed keys and draws the question in the new width, once the size is stable", async () => {
    const { input, clock, ask, held, screen } = openTerminal();
    let columns = 80;
    const answer = ask({ about: () => `ABOUT IN ${columns}\n` });
    input.type(PAINTED);
    await clock.advance(QUIET_MS);
    input.type("co");
    columns = 40;
    held.resized();
    input.type("de\r");
    await clock.advance(QUIET_MS - 1);
    held.resized();
    input.type(`${PAINTED}code\r`);
    await clock.advance(QUIET_MS);
    expect(screen().match(/ABOUT IN \d+/g)).toEqual(["ABOUT IN 80", "ABOUT IN 40"]);
    input.type("code\r");
    input.type(PAINTED);
    await clock.advance(QUIET_MS);
    input.type("code\r");
    expect(await answer).toBe("code");
  });

  test("restarts the wait; without a question it does nothing", async () => {
    const { input, clock, ask, held, screen } = openTerminal();
    held.resized();
    await clock.advance(QUIET_MS);
    expect(screen()).toBe("");
    const withdrawn = new AbortController();
    const answer = ask({ signal: withdrawn.signal });
    input.type(PAINTED);
    held.resized();
    withdrawn.abort();
    expect(await answer).toBeUndefined();
    await clock.advance(QUIET_MS);
    expect(screen().match(/ABOUT/g)).toHaveLength(1);
  });
});

test("Ctrl-C, Ctrl-Z and Ctrl-\\ work at any moment; Ctrl-D on an empty line ends the question", async () => {
  const { input, clock, ask, signals, held } = openTerminal();
  input.type("\u0003");
  const answer = ask();
  input.type(`\u0003${PAINTED}`);
  await clock.advance(QUIET_MS);
  input.type("\u001a");
  expect(input.raw).toBe(false);
  held.resumed();
  expect(input.raw).toBe(true);
  input.type(PAINTED);
  await clock.advance(QUIET_MS);
  input.type("\u001c\u0004");
  expect(await answer).toBeUndefined();
  expect(signals).toEqual(["SIGINT", "SIGINT", "SIGTSTP", "SIGQUIT"]);
});

test("after release(), or after the terminal was closed, it leaves raw mode and asks no questions", async () => {
  const { input, ask, held } = openTerminal();
  const answer = ask();
  input.emit("end");
  expect(await answer).toBeUndefined();
  expect(input.raw).toBe(false);
  expect(await ask()).toBeUndefined();
  held.release();
});
