import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { manualClock } from "../testing/manual-clock.ts";
import { type BubblewrapOptions, bwrapArguments } from "./bubblewrap.ts";
import type { Plan } from "./containment.ts";
import { countsPerNamespace } from "./namespace-tree.ts";
import { unshareArguments } from "./unshare.ts";

const home = realpathSync(mkdtempSync(join(tmpdir(), "belay-bwrap-")));
const workspace = join(home, "workspace");
const stateDir = join(workspace, ".belay");
mkdirSync(stateDir, { recursive: true });
afterAll(() => rmSync(home, { recursive: true, force: true }));

const root: BubblewrapOptions = {
  ...{ bwrap: "/usr/bin/bwrap", setpriv: "/usr/bin/setpriv", umount: "/usr/bin/umount" },
  ...{ userNamespace: false, root: true, caps: true, stateDir, hidden: [], clock: manualClock() },
};
const user: BubblewrapOptions = { ...root, userNamespace: true, root: false };

const plan: Plan = {
  ...{
    id: "proc_a.1",
    cookie: "proc_a.1:x",
    argv: ["/bin/true"],
    env: {},
    cwd: workspace,
    workspace,
    profile: "contain",
  },
  ...{ limits: { processesMax: 100 }, terminal: false },
};
const inWorkspace: Plan = { ...plan, profile: "workspace" };

const textOf = (args: readonly string[]): string => args.join(" ");

describe("what bubblewrap is told", () => {
  test.each([
    ["root", root],
    ["a user", user],
  ])("G20: a tree of %s ends with its leader, and the leader with the server", (_, options) => {
    for (const one of [plan, inWorkspace]) {
      const args = bwrapArguments(options, one);
      expect(args).toEqual(
        expect.arrayContaining(["--die-with-parent", "--unshare-pid", "--as-pid-1", "--new-session"]),
      );
      expect(args.at(-1)).toBe("/bin/true");
    }
  });

  test("a user's command gives up what its leader needed for the cap", () => {
    const text = textOf(bwrapArguments(user, plan));
    expect(text).toContain("--cap-add CAP_SYS_ADMIN");
    expect(text).toContain("echo 400 >/proc/sys/kernel/pid_max");
    expect(text.indexOf("--bounding-set=-all")).toBeGreaterThan(text.indexOf("pid_max"));
  });

  test("without the means to give a right up, none is asked for", () => {
    const text = textOf(bwrapArguments({ ...user, setpriv: undefined }, plan));
    expect(text).not.toContain("--cap-add");
    expect(text).not.toContain("pid_max");
  });

  test("on a kernel that counts for the whole machine, its count is not touched", () => {
    for (const options of [root, user]) {
      for (const one of [plan, inWorkspace]) {
        expect(textOf(bwrapArguments({ ...options, caps: false }, one))).not.toContain("pid_max");
      }
    }
    const means = { unshare: "unshare", setpriv: "setpriv", setsid: "setsid", clock: manualClock() };
    const text = textOf(unshareArguments({ ...means, userNamespace: true, caps: false }, plan));
    expect(text).not.toContain("pid_max");
    expect(text).not.toContain("--keep-caps");
  });

  test("in a workspace root has no rights either, with or without the means to cap", () => {
    expect(textOf(bwrapArguments(root, inWorkspace))).toContain("--bounding-set=-all");
    const bare = textOf(bwrapArguments({ ...root, setpriv: undefined }, inWorkspace));
    expect(bare).toContain("--cap-drop ALL");
    expect(bare).not.toContain("--cap-add");
    expect(textOf(bwrapArguments({ ...root, userNamespace: true, caps: false }, inWorkspace))).toContain(
      "--cap-drop ALL",
    );
  });

  test("G35: what is to be hidden is hidden in every profile, a file as well as a directory", () => {
    const secret = join(home, "secret");
    writeFileSync(secret, "x");
    for (const one of [plan, inWorkspace, { ...plan, profile: "none" } as const]) {
      const text = textOf(bwrapArguments({ ...user, hidden: [secret, stateDir, join(home, "absent")] }, one));
      expect(text).toContain(`--ro-bind /dev/null ${secret} --tmpfs ${stateDir} --chdir`);
    }
  });

  test("G35: a workspace that is the system itself, or holds it, is no wall and is refused", () => {
    for (const one of ["/", "/proc", "/proc/sys", "/sys/kernel", "/dev"]) {
      expect(() => bwrapArguments(root, { ...inWorkspace, workspace: one })).toThrow(
        expect.objectContaining({ code: "uncontained" }),
      );
      expect(bwrapArguments(root, { ...plan, workspace: one })).toContain("--dev-bind");
    }
    expect(textOf(bwrapArguments(root, { ...inWorkspace, workspace: "/dev/shm/x" }))).toContain("--bind /dev/shm/x");
  });

  test("G35: Belay's own directory is hidden, also inside the workspace", () => {
    const args = bwrapArguments(user, inWorkspace);
    const bound = args.lastIndexOf("--bind");
    const hidden = args.lastIndexOf("--tmpfs");
    expect(args.slice(bound, bound + 3)).toEqual(["--bind", workspace, workspace]);
    expect(args.slice(hidden, hidden + 2)).toEqual(["--tmpfs", stateDir]);
    expect(hidden).toBeGreaterThan(bound);
  });
});

test.each([
  ["6.18.44", true],
  ["6.14.0-rc1", true],
  ["7.0", true],
  ["6.13.9-arch1", false],
  ["5.15.0-100-generic", false],
  ["", false],
])("whether Linux %s counts processes per namespace", (release, expected) => {
  expect(countsPerNamespace(release)).toBe(expected);
});
