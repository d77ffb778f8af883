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

/** What the kernel tells of us. */
const put = (name: string, text: string): void => writeFileSync(join(self, name), text);

test("a machine is what it runs on, and which of the programs it has", () => {
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
])("namespaces may be made with the right to administer the system: %s", (hex, may) => {
  put("status", `Name:\tnode\nCapInh:\t000001ffffffffff\nCapEff:\t${hex}\nCapBnd:\t000001ffffffffff\n`);
  expect(lookAtMachine(undefined, self).mayUnshare).toBe(may);
});

test("where the kernel tells nothing we have no rights and no control group", () => {
  expect(lookAtMachine(undefined, join(self, "not"))).toMatchObject({ mayUnshare: false, cgroup: undefined });
});

describe("our control group", () => {
  /** A directory that is like one. */
  function mount(name: string, ...groups: readonly string[]): string {
    for (const group of groups) {
      mkdirSync(join(self, name, group), { recursive: true });
      writeFileSync(join(self, name, group, "cgroup.procs"), "");
    }
    return join(self, name);
  }

  const mounts = (...lines: readonly string[]): void => put("mounts", `${lines.join("\n")}\n`);

  test("is the one that somebody says, whatever our own is", () => {
    expect(lookAtMachine("/delegated", self).cgroup).toBe("/delegated");
  });

  test("is our own, where it is mounted and ours to write to", () => {
    const unified = mount("unified", "user/own");
    put("cgroup", "12:pids:/\n0::/user/own\n");
    const first = mount("first-version", "user/own");
    mounts("proc /proc proc rw 0 0", "", `cgroup ${first} cgroup rw 0 0`, `cgroup2 ${unified} cgroup2 rw 0 0`);
    expect(lookAtMachine(undefined, self).cgroup).toBe(join(unified, "user/own"));
  });

  test("is the mount itself, where we are at its top", () => {
    const unified = mount("unified", ".");
    put("cgroup", "0::/\n");
    mounts(`cgroup2 ${unified} cgroup2 rw 0 0`);
    expect(lookAtMachine(undefined, self).cgroup).toBe(unified);
  });

  test("is looked for in every mount, and is none where we could not move ourselves", () => {
    const bare = mount("bare");
    mkdirSync(join(self, "bare/own"), { recursive: true });
    put("cgroup", "0::/own\n");
    mounts(`cgroup2 ${bare} cgroup2 rw 0 0`);
    expect(lookAtMachine(undefined, self).cgroup).toBeUndefined();
    const other = mount("other", "own");
    mounts(`cgroup2 ${bare} cgroup2 rw 0 0`, `cgroup2 ${other} cgroup2 rw 0 0`);
    expect(lookAtMachine(undefined, self).cgroup).toBe(join(other, "own"));
  });

  test("is none without the second version of control groups", () => {
    mounts(`cgroup2 ${mount("unified", "own")} cgroup2 rw 0 0`);
    put("cgroup", "12:pids:/own\n");
    expect(lookAtMachine(undefined, self).cgroup).toBeUndefined();
  });
});
