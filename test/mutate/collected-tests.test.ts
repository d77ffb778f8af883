// The stand-in for the test framework: a failure it would not notice would be a mutant that seems to survive.
import { expect, test } from "vitest";
import * as standIn from "./collected-tests.ts";

/** Loads a made-up file of tests, and says of each what it failed with. */
async function outcomesOf(name: string, declare: () => void): Promise<Readonly<Record<string, unknown>>> {
  await standIn.collect(name, async () => declare());
  const outcomes: Record<string, unknown> = {};
  for (const one of standIn.tests.filter(({ file }) => file === name)) {
    const failure = await standIn.runTest(one);
    outcomes[one.name] = failure instanceof Error ? failure.message : failure;
  }
  return outcomes;
}

test("a test fails by what it throws, at once or later, and passes otherwise", async () => {
  const outcomes = await outcomesOf("failing", () => {
    standIn.test("passes", () => {});
    standIn.test("throws", () => {
      throw new Error("at once");
    });
    standIn.describe("later", () => {
      standIn.test("rejects", { timeout: 5 }, () => Promise.reject(new Error("later")));
    });
  });
  expect(outcomes).toEqual({ passes: undefined, throws: "at once", "later > rejects": "later" });
});

test("what is around a test is done around it, from the outside to the inside and back, also if it fails", async () => {
  const done: string[] = [];
  const note = (word: string) => () => void done.push(word);
  await outcomesOf("around", () => {
    standIn.beforeEach(note("outer"));
    standIn.afterEach(note("/outer"));
    standIn.describe("within", () => {
      standIn.beforeEach(note("inner"));
      standIn.afterEach(note("/inner"));
      standIn.test("it", () => {
        standIn.onTestFinished(note("finished"));
        throw new Error("it fails");
      });
    });
  });
  expect(done).toEqual(["outer", "inner", "finished", "/inner", "/outer"]);
});

test("what is made for all is made for each; what a file has made while it was loaded stays", async () => {
  const done: string[] = [];
  const note = (word: string) => () => void done.push(word);
  await outcomesOf("for all", () => {
    standIn.afterAll(note("put away what was loaded"));
    standIn.describe("within", () => {
      standIn.beforeAll(note("made"));
      standIn.afterAll(note("put away"));
      standIn.test("one", note("one"));
      standIn.test("other", note("other"));
    });
  });
  expect(done).toEqual(["made", "one", "put away", "made", "other", "put away"]);
});

test("a failure in what is done after a test is the test's", async () => {
  const outcomes = await outcomesOf("after", () => {
    standIn.afterEach(() => {
      throw new Error("left something behind");
    });
    standIn.test("it", () => {});
  });
  expect(outcomes).toEqual({ it: "left something behind" });
});

test("a row of cases is a row of tests, each with its own name and values", async () => {
  const seen: unknown[] = [];
  const outcomes = await outcomesOf("rows", () => {
    standIn.test.each([
      ["a", 1],
      ["b", 2],
    ])("%s is %d", (...given: readonly unknown[]) => void seen.push(given));
    standIn.test.each([{ word: "x" }, { word: "x" }])("$word", ({ word }: { word: string }) => void seen.push(word));
  });
  expect(Object.keys(outcomes)).toEqual(["a is 1", "b is 2", "x", "x #1"]);
  expect(seen).toEqual([["a", 1], ["b", 2], "x", "x"]);
});

test("what is skipped is not collected, and what is only perhaps skipped is if it is not", async () => {
  const outcomes = await outcomesOf("skipped", () => {
    standIn.test.skipIf(true)("not here", () => {});
    standIn.test.skipIf(false)("here", () => {});
    standIn.describe.skipIf(true)("nor this", () => {
      standIn.test("within", () => {});
    });
  });
  expect(outcomes).toEqual({ here: undefined });
});

test("the title of a row has of it what the name asks for: it is the same in every process", async () => {
  const outcomes = await outcomesOf("titles", () => {
    standIn.test.each([["one", new Error("with a stack")]])("takes %s", () => {});
    standIn.test.each([["two"]])("takes none", () => {});
  });
  expect(Object.keys(outcomes)).toEqual(["takes one", "takes none"]);
});
