// Containment by bubblewrap: a PID namespace, and for the profile `workspace` a separate view of files and network.
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { ControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { FILTER_FD, gateArguments, leaderScript, SHELL } from "../launch/gate.ts";
import { isWithin } from "../launch/working-directory.ts";
import { capLine, dropRights, dropUndoing, holdNamespace, UNDOING } from "../tree/namespace-tree.ts";
import type { Containment, LaunchPlan } from "./containment.ts";
import { type HiddenPaths, hiddenPaths, isDirectory, type ProtectedPaths, realPath } from "./hidden-paths.ts";
import { socketFilter } from "./socket-filter.ts";

export interface BubblewrapOptions {
  readonly bwrap: string;
  /** Drops capabilities. Without it nothing that needs one is done: no cap on processes unless we are root. */
  readonly setpriv: string | undefined;
  /** Removes the second mount of /proc. */
  readonly umount: string | undefined;
  /** Whether the other namespaces require a user namespace. */
  readonly userNamespace: boolean;
  /** Whether the server's user is root. Its uid has privileges even without any capability. */
  readonly root: boolean;
  /** Whether the kernel counts pids per namespace. */
  readonly caps: boolean;
  /** Called for each process. */
  readonly protects: () => ProtectedPaths;
  readonly clock: Clock;
}

export function bubblewrap(options: BubblewrapOptions): Containment {
  return {
    mechanism: "bubblewrap",
    tier: "namespace",
    profiles: ["none", "contain", "workspace"],
    wrap: (plan) => {
      const filter = plan.profile === "workspace" ? socketFilter() : undefined;
      const args = bwrapArguments(options, plan, filter !== undefined);
      return { file: options.bwrap, args, ...(filter === undefined ? {} : { filter }) };
    },
    hold: (leader, plan) => holdNamespace(leader, plan, options.clock),
  };
}

/** The second mount of /proc, while the leader needs it: in a directory that only this tree sees. */
const SECOND_PROC = "/run/belay-proc";

export function bwrapArguments(options: BubblewrapOptions, plan: LaunchPlan, filtered = false): readonly string[] {
  const rights = rightsFor(options, plan);
  const protects = options.protects();
  const { exposed } = protects;
  const paths = hiddenPaths(protects, plan);
  return [
    ...["--die-with-parent", "--new-session", "--unshare-pid", "--as-pid-1"],
    ...(options.userNamespace ? ["--unshare-user"] : []),
    ...rights.flags,
    ...(filtered ? ["--seccomp", String(FILTER_FD)] : []),
    ...(plan.profile === "workspace" ? workspaceMounts(options, plan, rights.secondProc) : fullMounts(paths)),
    ...hidingMounts(paths, exposed, plan),
    ...["--chdir", plan.cwd, "--"],
    ...[SHELL, "-c", leaderScript(rights.before), "belay", ...rights.drop, ...gateArguments(plan)],
  ];
}

/** The whole file system as it is, devices included; only /proc is the tree's own. */
const fullMounts = ({ pinned }: HiddenPaths): readonly string[] => [
  ...["--dev-bind", "/", "/"],
  ...pinned.flatMap((path) => ["--dev-bind", path, path]),
  ...["--proc", "/proc"],
];

/**
 * Covers the hidden paths, and uncovers the workspace if it lies inside one: outermost first, so that each mount is on
 * top of the one around it. In `workspace` all else is read-only, and only directories inside it must be pinned.
 */
function hidingMounts(paths: HiddenPaths, exposed: string | undefined, plan: LaunchPlan): readonly string[] {
  const { directories, files, readOnly, pinned } = paths;
  const inWorkspace = plan.profile === "workspace";
  const unchanged = readOnly.filter((path) => !inWorkspace || isWithin(plan.workspace, path));
  const inside = pinned.filter((path) => inWorkspace && path !== plan.workspace && isWithin(plan.workspace, path));
  const shown = exposed === undefined || !inWorkspace || !isWithin(exposed, plan.workspace) ? exposed : plan.workspace;
  const mounts: readonly (readonly [path: string, mount: readonly string[]])[] = [
    ...directories.map((path) => [path, ["--tmpfs", path]] as const),
    ...files.map((path) => [path, ["--ro-bind", "/dev/null", path]] as const),
    ...unchanged.map((path) => [path, ["--ro-bind", path, path]] as const),
    ...(shown === undefined ? [] : [[shown, ["--bind", shown, shown]] as const]),
  ];
  return [
    ...inside.flatMap((path) => ["--bind", path, path]),
    ...mounts.toSorted(([one], [other]) => one.length - other.length).flatMap(([, mount]) => mount),
    ...directories.flatMap((path) => ["--remount-ro", path]),
  ];
}

interface Rights {
  readonly flags: readonly string[];
  /** Commands of the leader that use them. */
  readonly before: string;
  /** The prefix that drops them before the gate. */
  readonly drop: readonly string[];
  readonly secondProc: boolean;
}

const NO_RIGHTS: Rights = { flags: [], before: "", drop: [], secondProc: false };

/** Not needed by root. */
const CAP_RIGHTS = ["--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP"];

/**
 * Capping the tree takes a capability that the command must not have. The leader has it, uses it, and drops it for what
 * it starts. In `contain` root keeps the capabilities of an ordinary root, except those that undo mounts; a cap is then
 * a guard against accidents only. In `workspace` root drops all of them, and files that its uid alone could write to
 * are mounted read-only: so the leader needs a second mount of /proc for the cap, and removes it afterwards.
 */
function rightsFor(options: BubblewrapOptions, plan: LaunchPlan): Rights {
  const cap = options.caps ? capLine(plan.limits.processesMax) : "";
  const drop = options.setpriv === undefined ? undefined : dropRights(options.setpriv);
  if (!options.root || options.userNamespace) {
    if (drop !== undefined && cap !== "")
      return { ...NO_RIGHTS, flags: options.root ? [] : CAP_RIGHTS, before: cap, drop };
    return options.root && plan.profile === "workspace" ? { ...NO_RIGHTS, flags: ["--cap-drop", "ALL"] } : NO_RIGHTS;
  }
  if (plan.profile !== "workspace") {
    return options.setpriv === undefined
      ? { ...NO_RIGHTS, before: cap, flags: UNDOING.flatMap((name) => ["--cap-drop", `CAP_${name.toUpperCase()}`]) }
      : { ...NO_RIGHTS, before: cap, drop: dropUndoing(options.setpriv) };
  }
  if (drop === undefined || options.umount === undefined || cap === "") {
    return { ...NO_RIGHTS, flags: ["--cap-drop", "ALL"] };
  }
  const before = [capLine(plan.limits.processesMax, SECOND_PROC), `${options.umount} -R ${SECOND_PROC} || exit`].join(
    "\n",
  );
  return { flags: [], before, drop, secondProc: true };
}

function workspaceMounts(options: BubblewrapOptions, plan: LaunchPlan, secondProc: boolean): readonly string[] {
  const { workspace } = plan;
  if (isSystem(workspace)) throw tooWide(workspace);
  const tmp = [...new Set(["/tmp", "/var/tmp", realPath(tmpdir()) ?? "/tmp"])].filter(isDirectory);
  return [
    ...["--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
    ...["--ro-bind", "/", "/", ...deviceMounts(plan.terminal)],
    // Sockets of daemons are reachable by path from any network namespace.
    ...["--tmpfs", "/run"],
    ...(secondProc ? ["--proc", SECOND_PROC] : []),
    ...["--proc", "/proc"],
    ...(options.root ? ROOT_OWNED.flatMap((path) => ["--ro-bind-try", path, path]) : []),
    ...tmp.flatMap((path) => ["--tmpfs", path]),
    // Before the workspace, in case it is below one of these.
    ...SECRETS.flatMap((name) => hiding(join(homedir(), name))),
    ...["--bind", workspace, workspace],
    ...SECRETS.flatMap((name) => {
      const path = realPath(join(homedir(), name));
      return path !== undefined && path !== workspace && isWithin(workspace, path) ? hiding(path) : [];
    }),
  ];
}

/** Mounted anew for every tree, or deliberately read-only: write access there would undo the containment. */
const isSystem = (path: string): boolean =>
  ["/proc", "/sys", "/dev"].some((one) => isWithin(path, one)) || ["/proc", "/sys"].some((one) => isWithin(one, path));

const tooWide = (workspace: string): ControlError =>
  new ControlError("uncontained", `The profile "workspace" cannot hold a process in ${workspace}: it is the system.`, {
    hint: "Work in a directory of your own, or ask for a lower profile.",
  });

/**
 * The harmless devices. Not by `--dev`, except for a terminal, which needs its own devices: for that a user needs a
 * second user namespace, whose owner could lift the cap on processes again.
 */
function deviceMounts(terminal: boolean): readonly string[] {
  if (terminal) return ["--dev", "/dev"];
  const links = { fd: "", stdin: "/0", stdout: "/1", stderr: "/2" };
  return [
    ...["--tmpfs", "/dev", "--tmpfs", "/dev/shm"],
    ...DEVICES.flatMap((name) => ["--dev-bind-try", `/dev/${name}`, `/dev/${name}`]),
    ...Object.entries(links).flatMap(([name, end]) => ["--symlink", `/proc/self/fd${end}`, `/dev/${name}`]),
  ];
}

const DEVICES = ["null", "zero", "full", "random", "urandom", "tty"];

/** Files that root may write to by its uid alone. */
const ROOT_OWNED = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/acpi"];

/** Usual places of credentials, relative to the home directory. No tool's process needs them. */
const SECRETS = [
  ...[".ssh", ".aws", ".gnupg", ".config", ".netrc", ".npmrc", ".docker", ".kube", ".azure", ".git-credentials"],
  ...[".pypirc", ".password-store", ".local/share/keyrings", ".cargo/credentials.toml", ".bash_history"],
];

/**
 * Mounts that hide a path; none if it does not exist. Links are resolved first: a mount on a link is refused or has no
 * effect.
 */
function hiding(path: string): readonly string[] {
  const target = realPath(path);
  if (target === undefined) return [];
  return isDirectory(target) ? ["--tmpfs", target] : ["--ro-bind", "/dev/null", target];
}
