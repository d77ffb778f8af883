import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Mechanism } from "../../ports/spawner.ts";
import { fixFor } from "./fixes.ts";
import type { Machine } from "./machine.ts";
import type { TestResult } from "./self-test.ts";

const failed: TestResult = { kind: "failed", why: "it did" };
const bare: Machine = {
  ...{ platform: "linux", kernel: "6.14.0", root: false, mayUnshare: true, capsPerNamespace: true, programs: {} },
  cgroup: undefined,
};
const [setpriv, unshare, setsid] = ["/usr/bin/setpriv", "/usr/bin/unshare", "/usr/bin/setsid"];
const UTIL_LINUX = "Install util-linux: apt-get install util-linux.";

const rows: readonly [Mechanism, Partial<Machine>, string | undefined][] = [
  ["bubblewrap", {}, "Install bubblewrap: apt-get install bubblewrap."],
  ["unshare", {}, UTIL_LINUX],
  ["unshare", { programs: { unshare, setsid } }, UTIL_LINUX],
  ["unshare", { programs: { setpriv, setsid } }, UTIL_LINUX],
  ["unshare", { programs: { setpriv, unshare } }, UTIL_LINUX],
  [
    "cgroup",
    {},
    "Start the server in a control group that is delegated to it: " +
      "systemd-run --user --scope -p Delegate=yes belay …, or Delegate=yes in its unit.",
  ],
  ["cgroup", { cgroup: "/sys/fs/cgroup/own" }, undefined],
  ["anchor", {}, "Install perl: apt-get install perl-base."],
  ["anchor", { programs: { perl: "/usr/bin/perl" } }, undefined],
  ["group", {}, undefined],
  ["group", { platform: "win32" }, "Native Windows is not supported yet: use WSL2."],
  ["bubblewrap", { platform: "darwin" }, "Run the server on Linux: in a container, or in a virtual machine."],
];

test.each(rows)("the fix for %s is a command, where there is one", (mechanism, more, fix) => {
  expect(fixFor(mechanism, { ...bare, ...more }, failed)).toBe(fix);
});

test("an untested mechanism gets the same advice as a failed one, and a passed one none", () => {
  expect(fixFor("anchor", bare, undefined)).toBe("Install perl: apt-get install perl-base.");
  expect(fixFor("anchor", bare, { kind: "passed" })).toBeUndefined();
  expect(fixFor("group", { ...bare, platform: "win32" }, { kind: "passed" })).toBeUndefined();
});

const able: Machine = { ...bare, programs: { bwrap: "/usr/bin/bwrap", setpriv, unshare, setsid } };
const CONTAINER = /^Let the container make namespaces: docker run --security-opt seccomp=unconfined .* …$/;

test.each([
  [{}, undefined],
  [{ "proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n" }, /kernel\.apparmor_restrict_.*=0\.$/],
  [{ "proc/sys/kernel/apparmor_restrict_unprivileged_userns": "0\n" }, undefined],
  [{ "proc/sys/kernel/unprivileged_userns_clone": "0\n" }, /kernel\.unprivileged_userns_clone=1\.$/],
  [{ "proc/sys/user/max_user_namespaces": "0\n" }, /user\.max_user_namespaces=15000\.$/],
  [{ "proc/sys/user/max_user_namespaces": "7\n", ".dockerenv": "" }, CONTAINER],
  [{ "proc/sys/user/max_user_namespaces": "0\n", ".dockerenv": "" }, /^Let users make namespaces: sysctl -w user/],
  [{ "run/.containerenv": "" }, CONTAINER],
])("if the kernel refuses namespaces, the fix names the setting: %j", (files: Record<string, string>, words) => {
  const root = mkdtempSync(join(tmpdir(), "belay-fixes-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  for (const mechanism of ["bubblewrap", "unshare"] as const) {
    const fix = fixFor(mechanism, { ...able, mayUnshare: false }, failed, root);
    if (words === undefined) expect(fix).toBeUndefined();
    else expect(fix).toMatch(words);
    // A setting for ordinary users does not affect root.
    const asRoot = fixFor(mechanism, able, failed, root);
    if (words === CONTAINER || ".dockerenv" in files) expect(asRoot).toMatch(CONTAINER);
    else expect(asRoot).toBeUndefined();
  }
});
