// The options of processes, and the spawner: opened for the first process, or at once if an earlier run of the
// program left some.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { checkMs, invalid, isObject, rejectUnknown } from "../core/input.ts";
import type { Clock } from "../ports/clock.ts";
import type { Mechanism, ProcessLimits, Profile, Spawner, Tier } from "../ports/spawner.ts";
import type { HiddenFiles } from "./hidden-files.ts";

export interface ProcessesOptions {
  /** The directory that commands must start in or below. Default: the working directory. */
  readonly workspace?: string;
  /** For output and the ledger. Default: beside the store's file, or a temporary directory. */
  readonly dir?: string;
  /** Fail to open unless this containment tier, or a stronger one, is available. */
  readonly requireTier?: Tier;
  /** Use only this mechanism. Default: the strongest that passes its self-test. */
  readonly mechanism?: Mechanism;
  /** What a process may read and write by default. Default: `contain` where available. */
  readonly profile?: Profile;
  /** Files and directories that no process can see, in any profile, where the tier is `namespace`. */
  readonly hidden?: readonly string[];
  /**
   * Files and directories that no process can change, rename or remove, in any profile, where the tier is
   * `namespace`: code that the next start runs. The working directory of a process cannot be one of them.
   */
  readonly readOnly?: readonly string[];
  /** The environment variables of this program that processes receive. They receive no others. */
  readonly env?: { readonly allow?: readonly string[] };
  readonly limits?: ProcessLimits;
  /**
   * The grace period of a process that is stopped alone. If its call or session is stopped, the shorter of this and
   * Belay's grace period applies. Default: Belay's grace period.
   */
  readonly graceMs?: number;
  /** A cgroup v2 directory that was delegated to this program. */
  readonly cgroup?: string;
  /** A spawner of your own, instead of all of the above: commands in a container, or on another machine. */
  readonly spawner?: Spawner;
}

export interface LazySpawner {
  readonly open: () => Promise<Spawner>;
  /** True: opened before anything else, to end leftover processes or because a tier is required. */
  readonly atOnce: boolean;
}

export interface SpawnerNotices {
  readonly clock: Clock;
  readonly onNotice: (text: string, warning?: true) => void;
}

export function lazySpawner(
  options: ProcessesOptions,
  store: unknown,
  hidden: HiddenFiles,
  { clock, onNotice }: SpawnerNotices,
): LazySpawner {
  const { spawner: own, ...given } = options;
  if (own !== undefined) return { open: () => Promise.resolve(own), atOnce: false };
  const { dir = typeof store === "string" && store !== ":memory:" ? `${store}.processes` : undefined } = given;
  const workspace = resolve(given.workspace ?? ".");
  const open = async (): Promise<Spawner> => {
    const { openSpawner } = await import("../process/spawner.ts");
    const target = dir === undefined ? await mkdtemp(join(tmpdir(), "belay-")) : resolve(dir);
    const list = (): readonly string[] => hidden.list();
    const spawner = await openSpawner({ ...given, hidden: list, dir: target, workspace, clock, onNotice });
    const links = spawner.tier === "namespace" ? hidden.linkNotice() : undefined;
    for (const text of [await containmentWarning(spawner), hidden.noticeFor(workspace), links]) {
      if (text !== undefined) onNotice(text, true);
    }
    return dir === undefined ? temporary(spawner, target) : spawner;
  };
  return { open, atOnce: given.requireTier !== undefined || (dir !== undefined && existsSync(dir)) };
}

/** A warning about what commands can reach of Belay. Undefined: nothing. */
async function containmentWarning({ tier, mechanism }: Spawner): Promise<string | undefined> {
  const { tierWarning } = await import("../process/containment/attacks.ts");
  const { lookAtMachine } = await import("../process/containment/machine.ts");
  return tierWarning(tier, mechanism !== "unshare" || lookAtMachine().programs.mount !== undefined);
}

/** Deletes the output with the spawner, because an in-memory store cannot refer to it later. */
function temporary(spawner: Spawner, target: string): Spawner {
  return {
    tier: spawner.tier,
    mechanism: spawner.mechanism,
    spawn: (request) => spawner.spawn(request),
    output: (id) => spawner.output(id),
    close: async () => {
      await spawner.close();
      await rm(target, { recursive: true, force: true });
    },
  };
}

export function checkProcesses(given: ProcessesOptions): ProcessesOptions {
  if (!isObject(given)) throw invalid("`processes` must be an object.");
  const { workspace, dir, requireTier, mechanism, profile, hidden, env, limits, ...others } = given;
  const { graceMs, cgroup, spawner, readOnly, ...rest } = others;
  rejectUnknown(rest, "`processes`");
  for (const [name, path] of Object.entries({ workspace, dir, cgroup })) {
    if (path !== undefined && (typeof path !== "string" || path === "")) throw invalid(`\`${name}\` must be a path.`);
  }
  if (spawner !== undefined && !isObject(spawner)) throw invalid("`spawner` must be a Spawner.");
  oneOf("requireTier", requireTier, ["namespace", "cgroup", "anchor", "group"]);
  oneOf("mechanism", mechanism, ["bubblewrap", "unshare", "cgroup", "anchor", "group"]);
  oneOf("profile", profile, ["none", "contain", "workspace"]);
  if (limits !== undefined && !isObject(limits)) throw invalid("`limits` must be an object of numbers.");
  if (graceMs !== undefined) checkMs(graceMs, "graceMs", 30_000);
  for (const [name, paths] of Object.entries({ hidden, readOnly })) {
    if (paths !== undefined && (!Array.isArray(paths) || paths.some((path) => typeof path !== "string")))
      throw invalid(`\`${name}\` must be a list of paths.`);
  }
  const allow: unknown = isObject(env) ? (env.allow ?? []) : (env ?? []);
  if (!Array.isArray(allow) || allow.some((name) => typeof name !== "string")) {
    throw invalid("`env.allow` must be a list of names.");
  }
  return given;
}

function oneOf(name: string, given: unknown, words: readonly string[]): void {
  if (given === undefined || words.some((word) => word === given)) return;
  throw invalid(`\`${name}\` must be one of ${words.map((word) => `"${word}"`).join(", ")}.`);
}
