import { expect, test } from "vitest";
import { SeededChooser } from "./chooser.ts";
import { Distinct } from "./distinct.ts";
import { Trace } from "./trace.ts";

const hashOf = (line: string): string => {
  const trace = new Trace("hash");
  trace.note(line);
  return trace.hash;
};

test("what was counted once is not counted again, over many more than there is place for at first", () => {
  const chooser = new SeededChooser(1);
  const [distinct, plain] = [new Distinct(), new Set<string>()];
  for (let count = 0; count < 20_000; count += 1) {
    const hash = hashOf(`line ${chooser.below(12_000)}`);
    distinct.add(hash);
    plain.add(hash);
    if (count % 1_000 === 0) expect(distinct.size).toBe(plain.size);
  }
  expect(distinct.size).toBe(plain.size);
});

test("the number nought is one like any other", () => {
  const distinct = new Distinct();
  distinct.add("0.0");
  distinct.add("0.0");
  distinct.add("1.0");
  expect(distinct.size).toBe(2);
});
