import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { release, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { countsPerNamespace } from "../tree/namespace-tree.ts";
import { lookAtMachine } from "./machine.ts";

let self: string;
beforeEach(() => {
  self = mkdtempSync(join(tmpdir(), "belay-machine-"));
});
afterEach(() => rmSync(self, { recursive: true, force: true }));

/** Writes a file of the simulated /proc/self. */
const put = (name: string, text: string): void => writeFileSync(join(self, name), text);

test("a machine has its platform, kernel, user and programs", () => {
  const { platform, kernel, root, programs, capsPerNamespace } = lookAtMachine();
  expect([platform, kernel, root]).toEqual([process.platform, release(), process.getuid?.() === 0]);
  expect(capsPerNamespace).toBe(platform === "linux" && countsPerNamespace(release()));
  for (const [name, path] of Object.entries(programs)) expect(path).toMatch(new RegExp(`^/.*/${name}$`));
  expect(programs.ps).toBeDefined();
});

test.each([
  ["0000000000200000", true],
  ["000001ffffffffff", true],
  ["0000000000100000", false],
  ["0000000000400000", false],
  ["000001ffffdfffff", false],
  ["0000000000000000", false],
])("namespaces may be made with CAP_SYS_ADMIN: %s", (hex, may) => {
  put("status", `Name:\tnode\nCapInh:\t000001ffffffffff\nCapEff:\t${hex}\nCapBnd:\t000001ffffffffff\n`);
  expect(lookAtMachine(undefined, self).mayUnshare).toBe(may);
});

test("without /proc we have no capabilities and no control group", () => {
  expect(lookAtMachine(undefined, join(self, "not"))).toMatchObject({ mayUnshare: false, cgroup: undefined });
});

describe("our control group", () => {
  /** A directory that looks like a control group. */
  function mount(name: string, ...groups: readonly string[]): string {
    for (const group of groups) {
      mkdirSync(join(self, name, group), { recursive: true });
      writeFileSync(join(self, name, group, "cgroup.procs"), "");
    }
    return join(self, name);
  }

  const mounts = (...lines: readonly string[]): void => put("mounts", `${lines.join("\n")}\n`);

  test("is the configured one, whatever our own is", () => {
    expect(lookAtMachine("/delegated", self).cgroup).toBe("/delegated");
  });

  test("is our own, where it is mounted and writable", () => {
    const unified = mount("unified", "user/own");
    put("cgroup", "12:pids:/\n0::/user/own\n");
    const first = mount("first-version", "user/own");
    mounts("proc /proc proc rw 0 0", "", `cgroup ${first} cgroup rw 0 0`, `cgroup2 ${unified} cgroup2 rw 0 0`);
    expect(lookAtMachine(undefined, self).cgroup).toBe(join(unified, "user/own"));
  });

  test("is the mount itself, if we are at its top", () => {
    const unified = mount("unified", ".");
    put("cgroup", "0::/\n");
    mounts(`cgroup2 ${unified} cgroup2 rw 0 0`);
    expect(lookAtMachine(undefined, self).cgroup).toBe(unified);
  });

  test("is searched in every mount, and ignored where we could not move ourselves into it", () => {
    const bare = mount("bare");
    mkdirSync(join(self, "bare/own"), { recursive: true });
    put("cgroup", "0::/own\n");
    mounts(`cgroup2 ${bare} cgroup2 rw 0 0`);
    expect(lookAtMachine(undefined, self).cgroup).toBeUndefined();
    const other = mount("other", "own");
    mounts(`cgroup2 ${bare} cgroup2 rw 0 0`, `cgroup2 ${other} cgroup2 rw 0 0`);
    expect(lookAtMachine(undefined, self).cgroup).toBe(join(other, "own"));
  });

  test("requires version 2 of control groups", () => {
    mounts(`cgroup2 ${mount("unified", "own")} cgroup2 rw 0 0`);
    put("cgroup", "12:pids:/own\n");
    expect(lookAtMachine(undefined, self).cgroup).toBeUndefined();
  });
});
