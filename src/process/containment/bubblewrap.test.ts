import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { countsPerNamespace } from "../tree/namespace-tree.ts";
import { type BubblewrapOptions, bubblewrap, bwrapArguments } from "./bubblewrap.ts";
import type { LaunchPlan } from "./containment.ts";
import { unshareArguments } from "./unshare.ts";

const home = realpathSync(mkdtempSync(join(tmpdir(), "belay-bwrap-")));
const workspace = join(home, "workspace");
const stateDir = join(workspace, ".belay");
mkdirSync(stateDir, { recursive: true });
afterAll(() => rmSync(home, { recursive: true, force: true }));

const root: BubblewrapOptions = {
  ...{ bwrap: "/usr/bin/bwrap", setpriv: "/usr/bin/setpriv", umount: "/usr/bin/umount" },
  ...{ userNamespace: false, root: true, caps: true, protects: () => ({ hidden: [stateDir] }), clock: manualClock() },
};
const user: BubblewrapOptions = { ...root, userNamespace: true, root: false };

const plan: LaunchPlan = {
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
const inWorkspace: LaunchPlan = { ...plan, profile: "workspace" };

const hiding =
  (...hidden: readonly string[]) =>
  () => ({ hidden });

const textOf = (args: readonly string[]): string => args.join(" ");

describe("the arguments of bubblewrap", () => {
  test.each([
    ["root", root],
    ["a user", user],
  ])(
    "G20: a tree of %s ends with its leader, and the leader with the server",
    { meta: { id: "G20/bubblewrap-dies-with-server" } },
    (_, options) => {
      for (const one of [plan, inWorkspace]) {
        const args = bwrapArguments(options, one);
        expect(args).toEqual(
          expect.arrayContaining(["--die-with-parent", "--unshare-pid", "--as-pid-1", "--new-session"]),
        );
        expect(args.at(-1)).toBe("/bin/true");
      }
    },
  );

  test("a user's command drops the capabilities that its leader needed for the cap", () => {
    const text = textOf(bwrapArguments(user, plan));
    expect(text).toContain("--cap-add CAP_SYS_ADMIN");
    expect(text).toContain("echo 400 >/proc/sys/kernel/pid_max");
    expect(text.indexOf("--bounding-set=-all")).toBeGreaterThan(text.indexOf("pid_max"));
  });

  test("without setpriv no capability is requested", () => {
    const text = textOf(bwrapArguments({ ...user, setpriv: undefined }, plan));
    expect(text).not.toContain("--cap-add");
    expect(text).not.toContain("pid_max");
  });

  test("on a kernel with a machine-wide pid limit, that limit is not changed", () => {
    for (const options of [root, user]) {
      for (const one of [plan, inWorkspace]) {
        expect(textOf(bwrapArguments({ ...options, caps: false }, one))).not.toContain("pid_max");
      }
    }
    const means = {
      unshare: "unshare",
      setpriv: "setpriv",
      setsid: "setsid",
      mount: "mount",
      protects: () => ({ hidden: [] }),
      clock: manualClock(),
    };
    const text = textOf(unshareArguments({ ...means, userNamespace: true, caps: false }, plan));
    expect(text).not.toContain("pid_max");
    expect(text).not.toContain("--keep-caps");
  });

  test("in a workspace root has no capabilities either, with or without the programs for a cap", () => {
    expect(textOf(bwrapArguments(root, inWorkspace))).toContain("--bounding-set=-all");
    const bare = textOf(bwrapArguments({ ...root, setpriv: undefined }, inWorkspace));
    expect(bare).toContain("--cap-drop ALL");
    expect(bare).not.toContain("--cap-add");
    expect(textOf(bwrapArguments({ ...root, userNamespace: true, caps: false }, inWorkspace))).toContain(
      "--cap-drop ALL",
    );
  });

  test("G35: a tree in a workspace gets exactly these mounts", () => {
    const account = mkdtempSync(join(home, "account-"));
    mkdirSync(join(account, ".ssh"));
    mkdirSync(join(account, "work/.config"), { recursive: true });
    writeFileSync(join(account, ".netrc"), "secret");
    const { HOME, TMPDIR } = process.env;
    onTestFinished(() => {
      process.env.HOME = HOME;
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
    });
    const ours = mkdtempSync(join(home, "tmp-"));
    Object.assign(process.env, { HOME: account, TMPDIR: ours });
    const own = join(account, "work");
    const mounts = (options: BubblewrapOptions, more: Partial<LaunchPlan> = {}): string => {
      const args = bwrapArguments(options, { ...inWorkspace, workspace: own, cwd: own, ...more });
      return textOf(args.slice(0, args.indexOf("--chdir")));
    };
    const start = "--die-with-parent --new-session --unshare-pid --as-pid-1";
    const apart = "--unshare-net --unshare-ipc --unshare-uts --unshare-cgroup-try --ro-bind / /";
    const devices = [
      "--tmpfs /dev --tmpfs /dev/shm",
      ...["null", "zero", "full", "random", "urandom", "tty"].map((one) => `--dev-bind-try /dev/${one} /dev/${one}`),
      "--symlink /proc/self/fd /dev/fd --symlink /proc/self/fd/0 /dev/stdin",
      "--symlink /proc/self/fd/1 /dev/stdout --symlink /proc/self/fd/2 /dev/stderr",
    ].join(" ");
    const owned = ["sys", "sysrq-trigger", "irq", "bus", "acpi"].map(
      (one) => `--ro-bind-try /proc/${one} /proc/${one}`,
    );
    const temporary = ["/tmp", "/var/tmp", ours].filter((one) => existsSync(one)).map((one) => `--tmpfs ${one}`);
    const secrets = `--tmpfs ${account}/.ssh --ro-bind /dev/null ${account}/.netrc`;
    const hiding = `--tmpfs ${stateDir} --remount-ro ${stateDir}`;
    const rest = [...temporary, secrets, `--bind ${own} ${own}`, hiding].join(" ");
    const capped = "--proc /run/belay-proc --proc /proc";
    expect(mounts(root)).toBe([start, apart, devices, "--tmpfs /run", capped, ...owned, rest].join(" "));
    const rights = "--unshare-user --cap-add CAP_SYS_ADMIN --cap-add CAP_SETPCAP";
    expect(mounts(user)).toBe([start, rights, apart, devices, "--tmpfs /run --proc /proc", rest].join(" "));
    expect(mounts(user, { terminal: true })).toBe(
      [start, rights, apart, "--dev /dev --tmpfs /run --proc /proc", rest].join(" "),
    );
    // The whole account is the workspace: its credentials are hidden after it is mounted.
    const whole = mounts(user, { workspace: account, cwd: account });
    expect(whole.slice(whole.indexOf("--bind "))).toBe(`--bind ${account} ${account} ${secrets} ${hiding}`);
    // Where a user works in such a directory itself, it is not hidden.
    const within = mounts(user, { workspace: join(account, ".ssh"), cwd: join(account, ".ssh") });
    expect(within.slice(within.indexOf("--bind "))).toBe(`--bind ${account}/.ssh ${account}/.ssh ${hiding}`);
  });

  test.each([
    [
      "root drops those that undo mounts, and its cap only guards against accidents",
      root,
      plan,
      "",
      "echo 400 >/proc/sys/kernel/pid_max",
      false,
    ],
    [
      "a user's are dropped",
      user,
      plan,
      "--unshare-user --cap-add CAP_SYS_ADMIN --cap-add CAP_SETPCAP",
      "echo 400 >/proc/sys/kernel/pid_max",
      true,
    ],
    [
      "root in a user namespace needs no flags",
      { ...root, userNamespace: true },
      plan,
      "--unshare-user",
      "echo 400",
      true,
    ],
    [
      "a user without root and without a user namespace",
      { ...user, userNamespace: false },
      plan,
      "--cap-add CAP_SYS_ADMIN --cap-add CAP_SETPCAP",
      "echo 400",
      true,
    ],
    ["without setpriv none is requested", { ...user, setpriv: undefined }, inWorkspace, "--unshare-user", "", false],
    [
      "root in a workspace, by a second mount of /proc",
      root,
      inWorkspace,
      "",
      "echo 300 >/run/belay-proc/sys/kernel/ns_last_pid\n/usr/bin/umount -R /run/belay-proc || exit\n",
      true,
    ],
    ["root in a workspace without umount", { ...root, umount: undefined }, inWorkspace, "--cap-drop ALL", "", false],
    [
      "root in a user namespace, without a cap",
      { ...root, userNamespace: true, caps: false },
      plan,
      "--unshare-user",
      "",
      false,
    ],
  ])("the capabilities of a leader: %s", (_, options, one, flags, before, drops) => {
    const args = bwrapArguments(options, one);
    const given = args.slice(
      4,
      args.findIndex((arg) => arg === "--dev-bind" || arg === "--unshare-net"),
    );
    expect(given.join(" ")).toBe(flags);
    const script = args[args.indexOf("-c") + 1] ?? "";
    expect(script.includes("pid_max")).toBe(before !== "");
    expect(script).toContain(before);
    expect(args.includes("--bounding-set=-all")).toBe(drops);
  });

  test("`wrap` starts bubblewrap", () => {
    const { wrap, profiles, mechanism, tier } = bubblewrap(user);
    expect([mechanism, tier, profiles]).toEqual(["bubblewrap", "namespace", ["none", "contain", "workspace"]]);
    expect(wrap(plan)).toEqual({ file: "/usr/bin/bwrap", args: bwrapArguments(user, plan) });
  });

  test("G35: hidden paths are hidden in every profile, files as well as directories", () => {
    const secret = join(home, "secret");
    writeFileSync(secret, "x");
    for (const one of [plan, inWorkspace, { ...plan, profile: "none" } as const]) {
      const text = textOf(bwrapArguments({ ...user, protects: hiding(secret, stateDir, join(home, "absent")) }, one));
      expect(text).toContain(`--ro-bind /dev/null ${secret} --tmpfs ${stateDir} --remount-ro ${stateDir} --chdir`);
    }
  });

  test("G38: each directory above a hidden one is a mount point, so that none can be renamed", () => {
    const deep = join(home, "account/.local/state/belay");
    mkdirSync(deep, { recursive: true });
    const pins = (options: BubblewrapOptions, one: LaunchPlan): readonly string[] =>
      textOf(bwrapArguments(options, one)).match(/--(?:dev-)?bind (?!\/ )\S+ \S+/g) ?? [];
    const full = pins({ ...user, protects: hiding(deep) }, plan);
    const above = ["account", "account/.local", "account/.local/state"].map((path) => join(home, path));
    expect(full).toEqual(expect.arrayContaining([home, ...above].map((path) => `--dev-bind ${path} ${path}`)));
    // All of them before anything is covered.
    const text = textOf(bwrapArguments({ ...user, protects: hiding(deep) }, plan));
    expect(text.lastIndexOf("--dev-bind")).toBeLessThan(text.indexOf(`--tmpfs ${deep}`));
    // In a workspace the rest is read-only, and directories inside it are pinned as well.
    const account = join(home, "account");
    const inside = pins({ ...user, protects: hiding(deep) }, { ...inWorkspace, workspace: account, cwd: account });
    const own = [account, ...above.slice(1)].map((path) => `--bind ${path} ${path}`);
    expect(inside.filter((one) => one.startsWith("--bind"))).toEqual(own);
  });

  test("G38: a workspace inside a hidden directory is visible again, and nothing beside it", () => {
    const data = join(home, "data");
    const own = join(data, "demo");
    mkdirSync(own, { recursive: true });
    const text = textOf(
      bwrapArguments(
        { ...user, protects: () => ({ hidden: [data], exposed: own }) },
        { ...plan, cwd: own, workspace: own },
      ),
    );
    expect(text).toContain(`--tmpfs ${data} --bind ${own} ${own} --remount-ro ${data} --chdir ${own}`);
  });

  test("G35: a workspace that is a system directory, or contains one, is refused", () => {
    for (const one of ["/", "/proc", "/proc/sys", "/sys/kernel", "/dev"]) {
      expect(() => bwrapArguments(root, { ...inWorkspace, workspace: one })).toThrow(
        expect.objectContaining({
          code: "uncontained",
          hint: "Work in a directory of your own, or ask for a lower profile.",
        }),
      );
      expect(bwrapArguments(root, { ...plan, workspace: one })).toContain("--dev-bind");
    }
    expect(textOf(bwrapArguments(root, { ...inWorkspace, workspace: "/dev/shm/x" }))).toContain("--bind /dev/shm/x");
  });

  test("G35: Belay's own directory is hidden, even inside the workspace", () => {
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
