import { expect, test } from "vitest";
import { gate } from "../../test/fixtures/belay.ts";
import type { Actor } from "./exchange.ts";
import { KeptAnswers } from "./kept-answers.ts";
import { ANSWERS_KEPT_MAX } from "./limits.ts";

const ann: Actor = { name: "ann", scopes: new Set(), tenant: undefined };
const ben: Actor = { ...ann, name: "ben" };

test("the same request under one key is done once, also while it is being answered; others are done", async () => {
  const answers = new KeptAnswers<number>();
  const { passed, open } = gate();
  let done = 0;
  const act = async (): Promise<number> => {
    done += 1;
    const mine = done;
    await passed;
    return mine;
  };
  const both = [answers.once(ann, "k", {}, act), answers.once(ann, "k", {}, act)];
  open();
  expect(await Promise.all(both)).toEqual([1, 1]);
  expect(await answers.once(ann, "k", {}, act)).toBe(1);
  expect(await answers.once(ben, "k", {}, act)).toBe(2);
  expect(await answers.once(ann, undefined, {}, act)).toBe(3);
  await expect(answers.once(ann, "k", { other: true }, act)).rejects.toMatchObject({ code: "conflict" });
  expect(done).toBe(3);
});

test("what has failed may be tried again", async () => {
  const answers = new KeptAnswers<number>();
  await expect(answers.once(ann, "k", {}, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await answers.once(ann, "k", { other: true }, async () => 7)).toBe(7);
});

test("G33: only so many are kept, the newest", async () => {
  const answers = new KeptAnswers<number>();
  for (let n = 0; n <= ANSWERS_KEPT_MAX; n += 1) await answers.once(ann, `k${n}`, {}, async () => n);
  expect(await answers.once(ann, "k1", {}, async () => -1)).toBe(1);
  expect(await answers.once(ann, "k0", {}, async () => -1)).toBe(-1);
});
