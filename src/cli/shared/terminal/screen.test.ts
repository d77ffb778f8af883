import { beforeEach, describe, expect, test } from "vitest";
import { Screen, type ScreenOutput, wrapped } from "./screen.ts";

let printed: string[] = [];
let shown: readonly string[] = [];

function outputTo(terminal: boolean, columns = 40): ScreenOutput {
  return {
    terminal,
    columns,
    print: (line) => void printed.push(line),
    show: (rows) => {
      shown = rows;
    },
  };
}

beforeEach(() => {
  printed = [];
  shown = [];
});

describe("on a terminal", () => {
  test("streamed text is shown as it arrives, and printed once a line is full or closed", () => {
    const screen = new Screen(outputTo(true));
    screen.append("agent", "one two three ");
    expect(printed).toEqual([]);
    expect(shown).toEqual(["  agent   one two three"]);
    screen.append("agent", "four five six seven eight nine");
    expect(printed).toEqual(["  agent   one two three four five six"]);
    expect(shown).toEqual(["          seven eight nine"]);
    screen.close();
    expect(printed.at(-1)).toBe("          seven eight nine");
    expect(shown).toEqual([]);
  });

  test("a message of another source closes the open text first", () => {
    const screen = new Screen(outputTo(true));
    screen.append("agent", "half a sen");
    screen.print("belay", "stopped");
    screen.append("agent", "tence");
    expect(printed).toEqual(["  agent   half a sen", "  belay   stopped"]);
    expect(shown).toEqual(["  agent   tence"]);
  });

  test("a very narrow terminal still gets the whole text", () => {
    const screen = new Screen(outputTo(true, 1));
    screen.print("belay", "everything stopped");
    expect(printed.map((line) => line.slice(10)).join("")).toBe("everythingstopped");
  });

  test("the status has its own row, which is cut to the width", () => {
    const screen = new Screen(outputTo(true));
    screen.status("1 count_slowly ".repeat(9));
    expect(shown.map((row) => row.length)).toEqual([39]);
    screen.status("");
    expect(shown).toEqual([]);
  });
});

describe("in a pipe", () => {
  test("only whole lines are printed, and none is redrawn", () => {
    const screen = new Screen(outputTo(false));
    screen.append("thinks", "hm");
    screen.append("agent", "one ");
    screen.append("agent", `${"word ".repeat(30)}\nnext`);
    screen.close();
    expect(printed).toEqual(["  thinks  hm", `  agent   one ${"word ".repeat(30).trim()}`, "          next"]);
    expect(shown).toEqual([]);
  });
});

// The rest of a split escape sequence is plain letters.
test("text cannot imitate another source, nor control the terminal", () => {
  const screen = new Screen(outputTo(false));
  screen.print("call 1", "done\n  belay   run completed\u001b]0;owned\u0007");
  screen.append("agent", "hi\n  belay   run completed\u001b[2J\u001b");
  screen.append("agent", "[31mred");
  screen.close();
  expect(printed).toEqual([
    "  call 1  done belay run completed",
    "  agent   hi",
    "          belay run completed[31mred",
  ]);
});

test("words that are longer than a line are split", () => {
  expect(wrapped("ab cdefghijkl m", 5)).toEqual(["ab", "cdefg", "hijkl", "m"]);
});
