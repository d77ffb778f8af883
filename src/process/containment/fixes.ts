// Advice for making a mechanism work: the exact command, where there is one.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Mechanism } from "../../ports/spawner.ts";
import type { Machine } from "./machine.ts";
import { elsewhere } from "./platform.ts";
import type { TestResult } from "./self-test.ts";

/** Undefined: the mechanism works, or no fix is known. `root`: the root of the machine's file system. */
export function fixFor(
  mechanism: Mechanism,
  machine: Machine,
  result: TestResult | undefined,
  root = "/",
): string | undefined {
  if (result?.kind === "passed") return undefined;
  if (machine.platform !== "linux") return elsewhere(machine.platform);
  const { bwrap, setpriv, unshare, setsid, perl } = machine.programs;
  switch (mechanism) {
    case "bubblewrap":
      return bwrap === undefined ? "Install bubblewrap: apt-get install bubblewrap." : namespaceFix(machine, root);
    case "unshare":
      return setpriv && unshare && setsid
        ? namespaceFix(machine, root)
        : "Install util-linux: apt-get install util-linux.";
    case "cgroup":
      return machine.cgroup === undefined ? CGROUP : undefined;
    case "anchor":
      return perl === undefined ? "Install perl: apt-get install perl-base." : undefined;
    case "group":
      return undefined;
  }
}

const CGROUP =
  "Start the server in a control group that is delegated to it: systemd-run --user --scope -p Delegate=yes belay …, " +
  "or Delegate=yes in its unit.";

/** Why the kernel refuses namespaces, and the setting that allows them. */
function namespaceFix(machine: Machine, root: string): string | undefined {
  const off = SWITCHES.find(({ path, when }) => read(join(root, path)) === when);
  if (off !== undefined && !machine.mayUnshare) return `Let users make namespaces: ${off.command}.`;
  if (CONTAINER_MARKS.some((path) => existsSync(join(root, path)))) {
    return `Let the container make namespaces: docker run ${UNCONFINED} …`;
  }
  return undefined;
}

const UNCONFINED = ["seccomp", "apparmor", "systempaths"].map((one) => `--security-opt ${one}=unconfined`).join(" ");

const SWITCHES = [
  {
    path: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    when: "1",
    command: "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
  },
  {
    path: "/proc/sys/kernel/unprivileged_userns_clone",
    when: "0",
    command: "sysctl -w kernel.unprivileged_userns_clone=1",
  },
  { path: "/proc/sys/user/max_user_namespaces", when: "0", command: "sysctl -w user.max_user_namespaces=15000" },
];

const CONTAINER_MARKS = ["/.dockerenv", "/run/.containerenv"];

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}
