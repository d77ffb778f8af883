import { expect, test } from "vitest";
import { Fifo } from "./fifo.ts";

test("returns items in the order in which they were pushed, however pushes and shifts are mixed", () => {
  const fifo = new Fifo<number>();
  const model: number[] = [];
  let next = 0;
  for (let step = 0; step < 2_000; step += 1) {
    // Grows and shrinks in waves, and is empty now and then.
    const grows = Math.floor(step / 100) % 2 === 0 ? step % 3 !== 0 : step % 3 === 0;
    if (grows) {
      fifo.push(next);
      model.push(next);
      next += 1;
    } else expect(fifo.shift()).toBe(model.shift());
    expect([fifo.length, fifo.at(0), fifo.at(1), fifo.last]).toEqual([
      ...[model.length, model[0], model[1], model.at(-1)],
    ]);
  }
  expect(fifo.from(0)).toEqual(model);
  expect(fifo.from(2)).toEqual(model.slice(2));
});

test("is empty after clear(), and can be used again", () => {
  const fifo = new Fifo<string>();
  fifo.push("a");
  fifo.clear();
  expect([fifo.length, fifo.shift(), fifo.last]).toEqual([0, undefined, undefined]);
  fifo.push("b");
  expect(fifo.from(0)).toEqual(["b"]);
});
