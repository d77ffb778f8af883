import ts from "typescript";
import { describe, expect, test } from "vitest";
import { marksIn } from "./marks.ts";
import { type Edit, editModules, mistake } from "./mistake.ts";
import { inline } from "./place.ts";

/** The edited text of one file in which "x" is marked. */
function edited(text: string, edit: Edit): string | undefined {
  return editModules([mistake("x", "A mistake.", edit)], marksIn("/", new Map([["a.ts", text]])))[0]?.text;
}

describe("a mark", () => {
  test.each([
    ["f();\ng(); // @fault x\nh();", "f();\n; // @fault x\nh();"],
    ["f();\n// @fault x\ng();\nh();", "f();\n// @fault x\n;\nh();"],
    ["// @fault x\n// Why it is so.\nif (a) {\n  b();\n}", "// @fault x\n// Why it is so.\n;"],
    ["if (a) return b; // Because. @fault x", "; // Because. @fault x"],
    ["const a = {\n  b: 1, // @fault x\n  c: 2,\n};", "const a = {\n   // @fault x\n  c: 2,\n};"],
    ["const a = [\n  one,\n  // @fault x\n  two,\n];", "const a = [\n  one,\n  // @fault x\n  \n];"],
    ["class A {\n  #b(): void {} // @fault x\n}", "class A {\n   // @fault x\n}"],
    ['switch (a) {\n  case "b": // @fault x\n    c();\n}', "switch (a) {\n  \n}"],
  ])("names the outermost node that starts on its line: %j", (text, removed) => {
    expect(edited(text, (at) => at.remove())).toBe(removed);
  });

  test.each([
    ["f();", "No line is marked with @fault x."],
    ["f(); // @fault x\ng(); // @fault x", "2 lines are marked with @fault x, not one."],
    ["f(); g(); // @fault x", "2 nodes start on line 1 of a.ts"],
    ["f(\n  a, // @fault x\n);", "No statement, member, case, property or element starts on line 2"],
    ["f(); // @fault x because", "No line is marked with @fault x."],
  ])("that is missing, doubled or in the wrong place is an error: %j", (text, message) => {
    expect(() => edited(text, (at) => at.remove())).toThrow(message);
  });

  test("may name several mistakes, and places of one mistake by labels", () => {
    const files = new Map([["a.ts", "f(1); // @fault x, y:one\ng(2); // @fault y:two"]]);
    const marks = marksIn("/", files);
    expect([...marks.names]).toEqual(["x", "y:one", "y:two"]);
    const both = mistake("y", "A mistake.", {
      one: (at, other) => at.value().arg(0, 1).become(other("two").value().arg(0, 1).text),
    });
    expect(editModules([both], marks)[0]?.text).toBe("f(2); // @fault x, y:one\ng(2); // @fault y:two");
  });
});

describe("a place", () => {
  const cases: readonly [string, string, Edit, string][] = [
    ["the condition of an if", "if (a) b(); // @fault x", (at) => at.condition().become("true"), "if (true) b();"],
    ["what an if does", "if (a) b(); // @fault x", (at) => at.whenTrue().remove(), "if (a) ;"],
    [
      "the else",
      "const v = a ? b : c; // @fault x",
      (at) => at.value().whenFalse().become("d"),
      "const v = a ? b : d;",
    ],
    [
      "an operand",
      "if (a && (b || c) && d) e(); // @fault x",
      (at) => at.condition().operand(1, 3).drop(),
      "if (a && d) e();",
    ],
    ["the first operand", "if (a || b) e(); // @fault x", (at) => at.condition().operand(0, 2).drop(), "if (b) e();"],
    ["a side", "a = b + 1; // @fault x", (at) => at.value().right().left().become("0"), "a = 0 + 1;"],
    ["a literal", "if (a.b > 0) c(0.5); // @fault x", (at) => at.literal(0).become("9"), "if (a.b > 9) c(0.5);"],
    ["an argument", "f(a, b); // @fault x", (at) => at.value().arg(1, 2).become("c"), "f(a, c);"],
    ["the target of a call", "a.b(c); // @fault x", (at) => at.value().become(at.value().target().text), "a;"],
    ["a part of a list", "f([a, b, c]); // @fault x", (at) => at.value().arg(0, 1).part(1, 3).remove(), "f([a,  c]);"],
    [
      "a part of a text",
      'f("a = FULL"); // @fault x',
      (at) => at.value().arg(0, 1).swap("FULL", "OFF"),
      'f("a = OFF");',
    ],
    ["a found node", "f(() => g()); // @fault x", (at) => at.find(ts.isArrowFunction, "an arrow").become("h"), "f(h);"],
    ["what comes before and after", "f(); // @fault x", (at) => [at.before("a();"), at.after("b();")], "a();f();b();"],
  ];

  test.each(cases)("%s", (_, text, edit, result) => {
    expect(edited(text, edit)?.replace(/ \/\/.*$/, "")).toBe(result);
  });

  test("a parameter of the function around it, whole or by its part", () => {
    const text = "function f(lane: Lane, { a, b: c }: Stop) {\n  g(); // @fault x\n}";
    expect(edited(text, (at) => at.become(`${at.param(0)}(${at.param(1, 0)}, ${at.param(1, 1)});`))).toContain(
      "lane(a, c);",
    );
  });

  test("code that uses names of the source is written out and called", () => {
    const text = "f(run.live); // @fault x";
    const put = edited(text, (at) => at.value().become(inline((run: { live: number }) => run.live + 1, "run")));
    expect(put?.replaceAll(/\s/g, "")).toContain("((run)=>run.live+1)(run);");
  });

  test.each<[string, Edit, string]>([
    ["f(); // @fault x", (at) => at.condition().become("true"), "was expected to be something that has a condition"],
    ["f(a, b); // @fault x", (at) => at.value().arg(0, 1).remove(), "has 2 arguments, not 1"],
    ["f(1, 1); // @fault x", (at) => at.literal(1).become("2"), "has 2 times the literal 1, not 1"],
    ["f(); // @fault x", () => [], "it changes nothing"],
    [
      "f(a); // @fault x",
      (at) => [at.become("g();"), at.value().arg(0, 1).become("b")],
      "two changes of one mistake overlap",
    ],
  ])("an edit that does not fit the source names the mistake and the place: %j", (text, edit, why) => {
    expect(() => edited(text, edit)).toThrow(why);
  });
});
