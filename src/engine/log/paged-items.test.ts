import { expect, test } from "vitest";
import { Gate } from "../../testing/gate.ts";
import { pagedItems } from "./paged-items.ts";
import { Stoppable } from "./stoppable-generator.ts";

const over = { done: true, value: undefined };

function pagesOf(pages: readonly (readonly number[])[], gate?: Gate): Stoppable<readonly number[]> {
  return new Stoppable(async function* (): AsyncGenerator<readonly number[], void> {
    for (const page of pages) {
      await gate?.opened;
      yield page;
    }
  });
}

test("yields every item of every page, empty pages included, and ends", async () => {
  expect(await Array.fromAsync(pagedItems(pagesOf([[1, 2], [], [3], [], []])))).toEqual([1, 2, 3]);
  expect(await Array.fromAsync(pagedItems(pagesOf([])))).toEqual([]);
});

test("answers concurrent calls of next() in order", async () => {
  const gate = new Gate();
  const items = pagedItems(pagesOf([[1, 2], [3], [4]], gate));
  const steps = Array.from({ length: 6 }, () => items.next());
  gate.open();
  expect((await Promise.all(steps)).map(({ value }) => value)).toEqual([1, 2, 3, 4, undefined, undefined]);
});

test("yields nothing more of a page once it was left or its pages were stopped", async () => {
  const left = pagedItems(pagesOf([[1, 2, 3]]));
  await left.next();
  expect(await left.return(undefined)).toEqual(over);
  expect(await left.next()).toEqual(over);
  const pages = pagesOf([[1, 2, 3]]);
  const stopped = pagedItems(pages);
  await stopped.next();
  await pages.return();
  expect(await stopped.next()).toEqual(over);
  await using ended = pagedItems(pagesOf([[1]]));
  await expect(ended.throw(new Error("left"))).rejects.toThrow("left");
  expect(await ended.next()).toEqual(over);
});

test("rejects with the failure of the pages, and has ended then", async () => {
  const items = pagedItems(
    new Stoppable(async function* (): AsyncGenerator<readonly number[], void> {
      yield [1];
      throw new Error("broken");
    }),
  );
  const [first, second, third] = [items.next(), items.next(), items.next()];
  expect(await first).toEqual({ done: false, value: 1 });
  await expect(second).rejects.toThrow("broken");
  expect(await third).toEqual(over);
});
