// Where processes are started from: opened when the first one is wanted, or at once if an earlier life has left some.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { checkMs, invalid, isObject, rejectUnknown } from "../core/input.ts";
import type { Clock } from "../ports/clock.ts";
import type { Mechanism, ProcessLimits, Profile, Spawner, Tier } from "../ports/spawner.ts";
import type { HiddenFiles } from "./hidden-files.ts";

export interface ProcessesOptions {
  /** Where commands begin; they may not begin outside of it. Default the working directory. */
  readonly workspace?: string;
  /** For output and the ledger. Default beside the store's file, or a temporary directory. */
  readonly dir?: string;
  /** Refuses to open if trees do not die at least this surely on this machine. */
  readonly requireTier?: Tier;
  /** This mechanism and no other. Default: the surest that passes its test. */
  readonly mechanism?: Mechanism;
  /** What a process may see and touch, unless it is asked for otherwise. Default `contain` where that can be done. */
  readonly profile?: Profile;
  /** Files and directories that no process sees, in any profile, where the tier is `namespace`. */
  readonly hidden?: readonly string[];
  /**
   * Files and directories that no process changes, renames or removes, in any profile, where the tier is `namespace`:
   * code that the next start runs. A directory in which a process works is not one of them.
   */
  readonly readOnly?: readonly string[];
  /** Names of variables that are let through from this program's environment. Nothing else is. */
  readonly env?: { readonly allow?: readonly string[] };
  readonly limits?: ProcessLimits;
  /**
   * How long a process may take to clean up when it is stopped by itself. Stopped together with its call or session, it
   * has the shorter of this and the grace period of the Belay. Default that of the Belay.
   */
  readonly graceMs?: number;
  /** A directory of cgroup v2 that was delegated to this program. */
  readonly cgroup?: string;
  /** One of your own, instead of all of the above: commands in a container, or on another machine. */
  readonly spawner?: Spawner;
}

export interface LazySpawner {
  readonly open: () => Promise<Spawner>;
  /** Opened before anything else is: to end what is left, or because a tier is required. */
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
    const place = dir === undefined ? await mkdtemp(join(tmpdir(), "belay-")) : resolve(dir);
    const list = (): readonly string[] => hidden.list();
    const spawner = await openSpawner({ ...given, hidden: list, dir: place, workspace, clock, onNotice });
    const links = spawner.tier === "namespace" ? hidden.linkNotice() : undefined;
    for (const text of [await reachOf(spawner), hidden.noticeFor(workspace), links]) {
      if (text !== undefined) onNotice(text, true);
    }
    return dir === undefined ? forgetful(spawner, place) : spawner;
  };
  return { open, atOnce: given.requireTier !== undefined || (dir !== undefined && existsSync(dir)) };
}

/** What commands can reach of Belay, for a person. Undefined: nothing. */
async function reachOf({ tier, mechanism }: Spawner): Promise<string | undefined> {
  const { tierWarning } = await import("../process/containment/attacks.ts");
  const { lookAtMachine } = await import("../process/containment/machine.ts");
  return tierWarning(tier, mechanism !== "unshare" || lookAtMachine().programs.mount !== undefined);
}

/** A store that forgets needs no output that is remembered. */
function forgetful(spawner: Spawner, place: string): Spawner {
  return {
    tier: spawner.tier,
    mechanism: spawner.mechanism,
    spawn: (request) => spawner.spawn(request),
    output: (id) => spawner.output(id),
    close: async () => {
      await spawner.close();
      await rm(place, { recursive: true, force: true });
    },
  };
}

export function checkProcesses(given: ProcessesOptions): ProcessesOptions {
  if (!isObject(given)) throw invalid("`processes` is an object.");
  const { workspace, dir, requireTier, mechanism, profile, hidden, env, limits, ...others } = given;
  const { graceMs, cgroup, spawner, readOnly, ...rest } = others;
  rejectUnknown(rest, "`processes`");
  for (const [name, path] of Object.entries({ workspace, dir, cgroup })) {
    if (path !== undefined && (typeof path !== "string" || path === "")) throw invalid(`\`${name}\` is a path.`);
  }
  if (spawner !== undefined && !isObject(spawner)) throw invalid("`spawner` is a spawner.");
  oneOf("requireTier", requireTier, ["namespace", "cgroup", "anchor", "group"]);
  oneOf("mechanism", mechanism, ["bubblewrap", "unshare", "cgroup", "anchor", "group"]);
  oneOf("profile", profile, ["none", "contain", "workspace"]);
  if (limits !== undefined && !isObject(limits)) throw invalid("`limits` is an object of numbers.");
  if (graceMs !== undefined) checkMs(graceMs, "graceMs", 30_000);
  for (const [name, paths] of Object.entries({ hidden, readOnly })) {
    if (paths !== undefined && (!Array.isArray(paths) || paths.some((path) => typeof path !== "string")))
      throw invalid(`\`${name}\` is a list of paths.`);
  }
  const allow: unknown = isObject(env) ? (env.allow ?? []) : (env ?? []);
  if (!Array.isArray(allow) || allow.some((name) => typeof name !== "string")) {
    throw invalid("`env.allow` is a list of names.");
  }
  return given;
}

function oneOf(name: string, given: unknown, words: readonly string[]): void {
  if (given === undefined || words.some((word) => word === given)) return;
  throw invalid(`\`${name}\` is one of ${words.map((word) => `"${word}"`).join(", ")}.`);
}
