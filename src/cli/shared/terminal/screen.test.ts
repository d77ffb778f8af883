import { beforeEach, describe, expect, test } from "vitest";
import { type Paper, Screen, wrapped } from "./screen.ts";

let printed: string[] = [];
let shown: readonly string[] = [];

function paper(terminal: boolean, columns = 40): Paper {
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
  test("speech is shown as it comes, and stays once a line is full or it has ended", () => {
    const screen = new Screen(paper(true));
    screen.speak("agent", "one two three ");
    expect(printed).toEqual([]);
    expect(shown).toEqual(["  agent   one two three"]);
    screen.speak("agent", "four five six seven eight nine");
    expect(printed).toEqual(["  agent   one two three four five six"]);
    expect(shown).toEqual(["          seven eight nine"]);
    screen.close();
    expect(printed.at(-1)).toBe("          seven eight nine");
    expect(shown).toEqual([]);
  });

  test("whoever else speaks, speaks after what was said so far", () => {
    const screen = new Screen(paper(true));
    screen.speak("agent", "half a sen");
    screen.say("belay", "stopped");
    screen.speak("agent", "tence");
    expect(printed).toEqual(["  agent   half a sen", "  belay   stopped"]);
    expect(shown).toEqual(["  agent   tence"]);
  });

  test("one that is too narrow for anything is still told everything", () => {
    const screen = new Screen(paper(true, 1));
    screen.say("belay", "everything stopped");
    expect(printed.map((line) => line.slice(10)).join("")).toBe("everythingstopped");
  });

  test("what is going on has a row of its own, which fits", () => {
    const screen = new Screen(paper(true));
    screen.status("1 count_slowly ".repeat(9));
    expect(shown.map((row) => row.length)).toEqual([39]);
    screen.status("");
    expect(shown).toEqual([]);
  });
});

describe("in a pipe", () => {
  test("only whole lines are told, and nothing is redrawn", () => {
    const screen = new Screen(paper(false));
    screen.speak("thinks", "hm");
    screen.speak("agent", "one ");
    screen.speak("agent", `${"word ".repeat(30)}\nnext`);
    screen.close();
    expect(printed).toEqual(["  thinks  hm", `  agent   one ${"word ".repeat(30).trim()}`, "          next"]);
    expect(shown).toEqual([]);
  });
});

// What is left of a sequence that came in two halves is only letters.
test("nobody can speak in the name of somebody else, nor steer the terminal", () => {
  const screen = new Screen(paper(false));
  screen.say("call 1", "done\n  belay   run completed\u001b]0;owned\u0007");
  screen.speak("agent", "hi\n  belay   run completed\u001b[2J\u001b");
  screen.speak("agent", "[31mred");
  screen.close();
  expect(printed).toEqual([
    "  call 1  done belay run completed",
    "  agent   hi",
    "          belay run completed[31mred",
  ]);
});

test("words that are longer than a line are cut", () => {
  expect(wrapped("ab cdefghijkl m", 5)).toEqual(["ab", "cdefg", "hijkl", "m"]);
});
