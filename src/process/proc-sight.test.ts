import { expect, test } from "vitest";
import { bootIdOf, identityOf, namespaceOf, type Seen } from "./proc.ts";
import { procSight } from "./proc-sight.ts";
import { REAL } from "./signal.ts";

test("what /proc shows of us is what we are, by every question", async () => {
  const sight = procSight();
  const { pid, ppid } = process;
  const identity = identityOf(pid);
  if (identity === undefined) throw new Error("We are here.");
  expect(sight).toMatchObject({ kind: "proc" });
  expect([sight.bootId(), sight.namespace()]).toEqual([bootIdOf(), namespaceOf()]);
  expect(sight.identityOf(pid)).toEqual(identity);
  expect([sight.isStill(identity), sight.isStill({ ...identity, startTime: 1 })]).toEqual([true, false]);
  expect(sight.statOf(pid)).toMatchObject({ pid, parent: ppid, startTime: identity.startTime });
  expect(sight.childrenOf(ppid)).toContain(pid);
  expect(sight.pids()).toContain(pid);
  expect(sight.pids().filter((one) => !Number.isSafeInteger(one) || one < 1)).toEqual([]);
  expect(sight.means()).toBe(REAL);
  expect([sight.openFile(pid, 4_000_000), sight.hasOpen(4_194_305, ["x"])]).toEqual([undefined, false]);
  const met: Seen[] = [];
  const all = await sight.everybody((one) => met.push(one));
  expect(met.map((one) => one.pid)).toContain(pid);
  expect(all.find((one) => one.pid === pid)?.identity).toEqual(identity);
  expect((await sight.everybody()).map((one) => one.pid)).toContain(pid);
});
