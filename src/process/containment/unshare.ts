// Containment by a PID namespace without bubblewrap, with util-linux alone.
//
// The tree has its own /proc, and the leader covers the hidden paths. The other mounts of the profile `workspace` are
// not supported, so that profile is refused.
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
  /** Covers hidden paths. Without it none is covered, and `doctor` reports that. */
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
    // `unshare` ends its child when it ends, but does not end with the server itself: each step needs its own signal.
    ...["--pdeathsig", "KILL", "--", options.unshare],
    ...(userNamespace ? ["--user", "--map-current-user", ...(keeps ? ["--keep-caps"] : [])] : []),
    ...["--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--"],
    // The command gets its own group, without `unshare` in it.
    ...[options.setsid, SHELL, "-c", leaderScript(before), "belay"],
    ...(userNamespace ? (keeps ? dropRights(setpriv) : []) : dropUndoing(setpriv)),
    ...gateArguments(plan),
  ];
}

/** Shell lines for the leader. If one of them fails, the command is not started. */
function hidingLines({ protects, mount }: UnshareOptions, plan: LaunchPlan): readonly string[] {
  if (mount === undefined) return [];
  const paths = protects();
  const { exposed } = paths;
  const { directories, files, readOnly, pinned } = hiddenPaths(paths, plan);
  if (directories.length + files.length + readOnly.length === 0) return [];
  const must = (...words: readonly string[]): string => `${quote(words)} || exit ${NOT_HIDDEN}`;
  const shown = exposed === undefined ? [] : [must("mkdir", "-p", exposed), must(mount, "-c", "--bind", ".", exposed)];
  return [
    // From here the workspace stays reachable after its directory has been covered.
    ...(exposed === undefined ? [] : [must("cd", exposed)]),
    // Recursive: in a user namespace the kernel refuses to bind without the mounts below.
    ...pinned.map((path) => must(mount, "--rbind", path, path)),
    ...readOnly.map((path) => must(mount, "--rbind", path, path)),
    // Each mount separately: those below it are separate mounts.
    ...[...readOnly, ...pinned.filter((path) => readOnly.some((one) => isWithin(one, path)))].map((path) =>
      must(mount, "-o", "remount,bind,ro", path),
    ),
    ...directories.map((path) => must(mount, "-t", "tmpfs", "-o", "mode=755,nosuid,nodev", "belay", path)),
    ...files.map((path) => must(mount, "--bind", "/dev/null", path)),
    ...shown,
    ...directories.map((path) => must(mount, "-o", "remount,bind,ro", path)),
    // Our initial working directory is below the mounts: from there everything could still be seen.
    must("cd", plan.cwd),
  ];
}

/** Exit code of a leader that could not hide a path. */
const NOT_HIDDEN = 124;
