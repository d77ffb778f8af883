import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { COOKIE_NAME } from "../launch/environment.ts";
import { bootIdOf, identityOf, namespaceOf, type Seen } from "./proc.ts";
import { procProcessTable } from "./proc-process-table.ts";
import { REAL } from "./signal.ts";

test("every query about this process agrees with /proc", async () => {
  const processTable = procProcessTable();
  const { pid, ppid } = process;
  const identity = identityOf(pid);
  if (identity === undefined) throw new Error("We are here.");
  expect(processTable).toMatchObject({ kind: "proc" });
  expect([processTable.bootId(), processTable.namespace()]).toEqual([bootIdOf(), namespaceOf()]);
  expect(processTable.identityOf(pid)).toEqual(identity);
  expect([processTable.isStill(identity), processTable.isStill({ ...identity, startTime: 1 })]).toEqual([true, false]);
  expect(processTable.statOf(pid)).toMatchObject({ pid, parent: ppid, startTime: identity.startTime });
  expect(processTable.childrenOf(ppid)).toContain(pid);
  expect(processTable.pids()).toContain(pid);
  expect(processTable.pids().filter((one) => !Number.isSafeInteger(one) || one < 1)).toEqual([]);
  expect(processTable.means()).toBe(REAL);
  expect([processTable.openFile(pid, 4_000_000), processTable.hasOpen(4_194_305, ["x"])]).toEqual([undefined, false]);
  const met: Seen[] = [];
  const all = await processTable.listProcesses((one) => met.push(one));
  // Only those that carry a cookie are passed to `meet`.
  expect(met.every(({ cookies }) => cookies.length > 0)).toBe(true);
  expect(all.find((one) => one.pid === pid)?.identity).toEqual(identity);
  expect((await processTable.listProcesses()).map((one) => one.pid)).toContain(pid);
});

test("only numeric names are processes; their cookies are read along", async () => {
  const root = mkdtempSync(join(tmpdir(), "belay-proc-table-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const name of ["7", "x8", "9x", "self", "sys/kernel/random"]) mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, "sys/kernel/random/boot_id"), "boot-1\n");
  const numbers = [1, 7, 7, 0, -1, 0, 0, 0, 0, 0, 1, 2, 0, 0, 20, 0, 1, 0, 70, 9, 9];
  writeFileSync(join(root, "7/stat"), `7 (sh) S ${numbers.join(" ")}\n`);
  writeFileSync(join(root, "7/environ"), `${COOKIE_NAME}=proc_table.1:x\0`);
  const processTable = procProcessTable(root);
  expect(processTable.pids()).toEqual([7]);
  const met: number[] = [];
  expect(await processTable.listProcesses(({ pid }) => met.push(pid))).toMatchObject([
    { pid: 7, cookies: ["proc_table.1:x"] },
  ]);
  expect(met).toEqual([7]);
});
