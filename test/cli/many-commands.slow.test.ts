// Many commands connect to one server at the same time: each gets its answer, and a stop among them is carried out.
import { expect, test } from "vitest";
import { EXIT_OUTCOME } from "../../src/cli/commands/run/run-exit.ts";
import { Shell } from "../fixtures/shell.ts";

const timeout = 180_000;

test("120 concurrent `belay run` complete", { timeout }, async () => {
  const shell = new Shell();
  await shell.serve();
  const runs = await Promise.all(Array.from({ length: 120 }, (_, index) => shell.belay("run", `say hello ${index}`)));
  const failed = runs.filter(({ code }) => code !== 0).map(({ code, err }) => ({ code, err }));
  expect(failed).toEqual([]);
  expect(runs.map(({ out }) => out)).toEqual(runs.map((_, index) => `hello ${index}\n`));
});

test("G40: `belay cancel` among 80 concurrent `belay run` stops its run", { timeout }, async () => {
  const shell = new Shell();
  await shell.serve();
  const waiting = shell.start("run", "wait here");
  await waiting.sees(/here\n/);
  const id = /run_\w+/.exec(waiting.err)?.[0] ?? "";
  const others = Array.from({ length: 80 }, () => shell.belay("run", "say hello"));
  const cancelled = await shell.belay("cancel", id);
  expect(cancelled.code).toBe(0);
  expect(await waiting.ended).toBe(EXIT_OUTCOME.cancelled);
  expect((await Promise.all(others)).filter(({ code }) => code !== 0)).toEqual([]);
});
