// Containment by a PID namespace without bubblewrap: what util-linux brings is enough for it.
//
// The view of processes is the tree's own, and what is hidden is covered by the leader. The other mounts of the profile
// `workspace` are not made, so it is refused here.
import type { Clock } from "../../ports/clock.ts";
import { quote } from "../launch/command-line.ts";
import { gateArguments, leaderScript, SHELL } from "../launch/gate.ts";
import { isWithin } from "../launch/working-directory.ts";
import { capLine, dropRights, dropUndoing, holdNamespace } from "../tree/namespace-tree.ts";
import type { Containment, LaunchPlan } from "./containment.ts";
import { hiddenPaths, type ProtectedPaths } from "./hidden-paths.ts";

export interface UnshareOptions {
  readonly unshare: string;
  readonly setpriv: string;
  readonly setsid: string;
  /** For covering what is hidden. Without it nothing is, and doctor says so. */
  readonly mount: string | undefined;
  readonly userNamespace: boolean;
  /** Whether the kernel counts pids per namespace. */
  readonly caps: boolean;
  /** Called for each process. */
  readonly protects: () => ProtectedPaths;
  readonly clock: Clock;
}

export function unshare(options: UnshareOptions): Containment {
  return {
    mechanism: "unshare",
    tier: "namespace",
    profiles: ["none", "contain"],
    wrap: (plan) => ({ file: options.setpriv, args: unshareArguments(options, plan) }),
    hold: (leader, plan) => holdNamespace(leader, plan, options.clock),
  };
}

export function unshareArguments(options: UnshareOptions, plan: LaunchPlan): readonly string[] {
  const { userNamespace, caps, setpriv } = options;
  const hiding = hidingLines(options, plan);
  const keeps = caps || hiding.length > 0;
  const before = [...hiding, ...(caps ? [capLine(plan.limits.processesMax)] : [])].join("\n");
  return [
    // `unshare` ends its child when it ends, but nobody ends `unshare` with the server: each link needs its own.
    ...["--pdeathsig", "KILL", "--", options.unshare],
    ...(userNamespace ? ["--user", "--map-current-user", ...(keeps ? ["--keep-caps"] : [])] : []),
    ...["--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"],
    // A group of its own for the command, in which `unshare` is not.
    ...[options.setsid, SHELL, "-c", leaderScript(before), "belay"],
    ...(userNamespace ? (keeps ? dropRights(setpriv) : []) : dropUndoing(setpriv)),
    ...gateArguments(plan),
  ];
}

/** Lines of the leader. If one of them fails, the command is not started. */
function hidingLines({ protects, mount }: UnshareOptions, plan: LaunchPlan): readonly string[] {
  if (mount === undefined) return [];
  const paths = protects();
  const { exposed } = paths;
  const { directories, files, readOnly, pinned } = hiddenPaths(paths, plan);
  if (directories.length + files.length + readOnly.length === 0) return [];
  const must = (...words: readonly string[]): string => `${quote(words)} || exit ${NOT_HIDDEN}`;
  const shown = exposed === undefined ? [] : [must("mkdir", "-p", exposed), must(mount, "-c", "--bind", ".", exposed)];
  return [
    // From here the workspace is reached after its directory has been covered.
    ...(exposed === undefined ? [] : [must("cd", exposed)]),
    // With what is mounted below: without it the kernel refuses, in a namespace of users.
    ...pinned.map((path) => must(mount, "--rbind", path, path)),
    ...readOnly.map((path) => must(mount, "--rbind", path, path)),
    // Each mount by itself: those below it are mounts of their own.
    ...[...readOnly, ...pinned.filter((path) => readOnly.some((one) => isWithin(one, path)))].map((path) =>
      must(mount, "-o", "remount,bind,ro", path),
    ),
    ...directories.map((path) => must(mount, "-t", "tmpfs", "-o", "mode=755,nosuid,nodev", "belay", path)),
    ...files.map((path) => must(mount, "--bind", "/dev/null", path)),
    ...shown,
    ...directories.map((path) => must(mount, "-o", "remount,bind,ro", path)),
    // The directory in which we were started is below the mounts: from there everything could still be seen.
    must("cd", plan.cwd),
  ];
}

/** How the leader ends if something could not be hidden. */
const NOT_HIDDEN = 124;
