// Reads living processes from Linux's /proc.
//
// A pid alone identifies no process, because it is reused. Together with the start time, counted from the boot of the
// machine, it identifies one process permanently.
//
// Data about one pid is read synchronously, because the kill path cannot wait. Environments are read in a thread
// (`scan-thread.ts`), because such a read waits for the memory of its process.
import { readlinkSync } from "node:fs";
import { opendir } from "node:fs/promises";
import { cookiesIn } from "../launch/environment.ts";
import { DESCENDANTS_MAX, NEWBORN_MAX, NEWBORN_ROUNDS, SCAN_SLICE } from "../limits.ts";
import { listProc as list, parseStat, readProc as read, type Stat, type Unread } from "./proc-file.ts";

export const PROC = "/proc";

export interface Identity {
  readonly pid: number;
  /**
   * Clock ticks from the boot of the machine to the start of the process; from `ps`, the digits of the start second.
   */
  readonly startTime: number;
  /** Identifies the boot of the machine. */
  readonly bootId: string;
}

/** One string for one process: a key for maps. */
export const nameOf = ({ pid, startTime, bootId }: Identity): string => `${pid} ${startTime} ${bootId}`;

export const isSame = (one: Identity, other: Identity): boolean => nameOf(one) === nameOf(other);

/**
 * `unknown`: it could not be read, for lack of a file descriptor or of permission. Counts as neither alive nor gone.
 */
export type Presence = "there" | "gone" | "unknown";

/** The entry of whichever process has this pid now. */
export function statOf(pid: number, root: string = PROC): Stat | "gone" | "unknown" {
  const text = read(`${root}/${pid}/stat`);
  if (typeof text === "string") return text === "gone" ? "gone" : "unknown";
  return parseStat(pid, text.toString("latin1")) ?? "unknown";
}

/** The letter of its state. Undefined: no process has this pid. */
export function stateOf(pid: number, root: string = PROC): string | undefined {
  const stat = statOf(pid, root);
  return typeof stat === "string" ? undefined : stat.state;
}

/** The identity of the process that has this pid now. Undefined: none is alive, or it cannot be read. */
export function identityOf(pid: number, root: string = PROC): Identity | undefined {
  const stat = statOf(pid, root);
  const bootId = bootIdOf(root);
  return typeof stat === "string" || isDead(stat) || bootId === undefined ? undefined : toIdentity(stat, bootId);
}

export function presenceOf(identity: Identity, root: string = PROC): Presence {
  const stat = same(identity, root);
  if (typeof stat === "string") return stat;
  return isDead(stat) ? "gone" : "there";
}

/** Whether this very process is alive. One that cannot be read counts as alive: death needs proof. */
export const isStill = (identity: Identity, root: string = PROC): boolean => presenceOf(identity, root) !== "gone";

/**
 * Whether this process leads the group numbered by its pid. A leader that is dead and not reaped still does: as long as
 * it is in the table, no other process can get its number.
 */
export function pinsGroup(leader: Identity, root: string = PROC): Presence {
  const stat = same(leader, root);
  if (typeof stat === "string") return stat;
  return stat.group === leader.pid && stat.state !== "X" && stat.state !== "x" ? "there" : "gone";
}

/**
 * The living children of all threads of one process. The kernel may omit some while others exit, so an empty result
 * proves nothing.
 */
export const childrenOf = (pid: number, root: string = PROC): readonly number[] => [...livingChildren(pid, root)];

/** Lazy: each child is checked only when it is consumed. */
function* livingChildren(pid: number, root: string): Generator<number> {
  const tasks = list(`${root}/${pid}/task`);
  const lists = tasks.map((task) => read(`${root}/${pid}/task/${task}/children`));
  // A kernel may be built without these lists. Only then are all processes searched for this parent.
  const bare = lists.length > 0 && lists.every((one) => one === "gone") && typeof statOf(pid, root) !== "string";
  const pids = bare
    ? pidsIn(list(root)).filter((one) => isChild(one, pid, root))
    : lists.flatMap((one) => (typeof one === "string" ? [] : pidsIn(one.toString("latin1").split(" "))));
  for (const one of pids) if (isAlive(one, root)) yield one;
}

/** All descendants of one process, nearest first, without itself. At most `max`. */
export function descendantsOf(pid: number, root: string = PROC, max = DESCENDANTS_MAX): readonly number[] {
  const found = new Set<number>();
  const open = [pid];
  for (const parent of open) {
    for (const child of livingChildren(parent, root)) {
      // A pid that is reused during the walk could close a cycle.
      if (child === pid || found.has(child)) continue;
      found.add(child);
      if (found.size >= max) return [...found];
      open.push(child);
    }
  }
  return [...found];
}

export interface Seen extends Stat {
  readonly identity: Identity;
  /** Its cookies, if they were requested and are readable. */
  readonly cookies: readonly string[];
  /** Whether its environment was requested and was empty. */
  readonly blank: boolean;
}

export interface ListOptions {
  /** Environments can take long to read, so this is for a thread, and for tests. */
  readonly cookies: boolean;
  readonly meet?: (one: Seen) => void;
  /** Processes whose environment is not read. */
  readonly unread?: ReadonlySet<number>;
  /** Called before an environment is read. */
  readonly reading?: (pid: number) => void;
}

/**
 * All living processes except kernel threads, in one pass. Rejects if the table cannot be read completely: a missing
 * entry would look like a death. `meet` is called at once for each.
 */
export async function listProcesses(options: ListOptions, root: string = PROC): Promise<readonly Seen[]> {
  const bootId = bootIdOf(root);
  if (bootId === undefined) throw new Error(`${root}/sys/kernel/random/boot_id cannot be read.`);
  const seen = new Map<number, Seen>();
  const blank: number[] = [];
  const readOne = (pid: number): void => {
    const one = see(pid, bootId, options, root);
    if (one === undefined) return;
    if (one.blank) blank.push(pid);
    seen.set(pid, one);
    options.meet?.(one);
  };
  const before = lastPid(root);
  for await (const entry of await opendir(root, { bufferSize: SCAN_SLICE })) {
    if (isPid(entry.name)) readOne(Number(entry.name));
  }
  // A process without an environment may have been in the middle of an exec. By now it is in the new program.
  for (const pid of blank.splice(0)) readOne(pid);
  for (const pid of newborn(before, root)) if (!seen.has(pid)) readOne(pid);
  return [...seen.values()];
}

/**
 * The processes that were born during the scan. One that forks and exits all the time is missed by every listing, but
 * the kernel shows the last pid it gave out, and the pids in between are few.
 */
function* newborn(before: number | undefined, root: string): Generator<number> {
  let known = before;
  for (let round = 0; round < NEWBORN_ROUNDS; round += 1) {
    const last = lastPid(root);
    // Lower than before: the numbering has wrapped. Then the next scan is the one that counts.
    if (known === undefined || last === undefined || last <= known || last - known > NEWBORN_MAX) return;
    for (let pid = known + 1; pid <= last; pid += 1) if (isFirstThread(pid, root)) yield pid;
    known = last;
  }
}

/** `0.1 0.2 0.3 1/234 5678`: the last field is the most recent pid. */
function lastPid(root: string): number | undefined {
  const text = read(`${root}/loadavg`);
  const last = typeof text === "string" ? Number.NaN : Number(text.toString("latin1").trim().split(" ").at(-1));
  return Number.isSafeInteger(last) ? last : undefined;
}

/** Threads have their own numbers, which answer to lookups but are in no listing. */
function isFirstThread(pid: number, root: string): boolean {
  const text = read(`${root}/${pid}/status`);
  return typeof text !== "string" && new RegExp(`^Tgid:\\s*${pid}$`, "m").test(text.toString("latin1"));
}

/** Those of `all` that are descendants of one of `tops`, without the tops themselves. */
export function below<One extends Stat>(all: readonly One[], tops: readonly number[]): readonly One[] {
  const children = Map.groupBy(all, (one) => one.parent);
  const found: One[] = [];
  const met = new Set(tops);
  const open = [...tops];
  for (const pid of open) {
    for (const child of children.get(pid) ?? []) {
      if (met.has(child.pid)) continue;
      met.add(child.pid);
      found.push(child);
      open.push(child.pid);
    }
  }
  return found;
}

/**
 * All processes whose environment carries the cookie. Omits those whose environment is unreadable: another user's
 * process, or a program with its own privileges. `meet` is called at once for each.
 */
export const carrying = (cookie: string, root: string = PROC, meet?: Visit): Promise<readonly Identity[]> =>
  those((one) => one.cookies.includes(cookie), { cookies: true }, root, meet);

export const inGroup = (group: number, root: string = PROC, meet?: Visit): Promise<readonly Identity[]> =>
  those((one) => one.group === group, { cookies: false }, root, meet);

export const inSession = (session: number, root: string = PROC, meet?: Visit): Promise<readonly Identity[]> =>
  those((one) => one.session === session, { cookies: false }, root, meet);

export type Visit = (identity: Identity) => void;

async function those(
  wanted: (one: Seen) => boolean,
  options: { readonly cookies: boolean },
  root: string,
  meet: Visit | undefined,
): Promise<readonly Identity[]> {
  const all = await listProcesses({ ...options, meet: (one) => wanted(one) && meet?.(one.identity) }, root);
  return all.filter(wanted).map((one) => one.identity);
}

const bootIds = new Map<string, string>();

/** Identifies this boot of the machine. Cached, because it cannot change while we run. */
export function bootIdOf(root: string = PROC): string | undefined {
  const known = bootIds.get(root);
  if (known !== undefined) return known;
  const text = read(`${root}/sys/kernel/random/boot_id`);
  if (typeof text === "string") return undefined;
  const bootId = text.toString("latin1").trim();
  bootIds.set(root, bootId);
  return bootId;
}

/** Identifies the set of pids that we see: in another container the same pid is another process. */
export function namespaceOf(root: string = PROC): string | undefined {
  try {
    return readlinkSync(`${root}/self/ns/pid`);
  } catch {
    return undefined;
  }
}

function see(pid: number, bootId: string, { cookies, unread, reading }: ListOptions, root: string): Seen | undefined {
  // Identity first, cookie second: if the pid changes hands in between, the cookie is attributed to an identity that is
  // gone, and no process is signalled for it.
  const text = known(read(`${root}/${pid}/stat`));
  const stat = text === undefined ? undefined : parseStat(pid, text.toString("latin1"));
  if (stat === undefined || stat.kernel || isDead(stat)) return undefined;
  const isRead = cookies && unread?.has(pid) !== true;
  if (isRead) reading?.(pid);
  const environs = isRead ? environsOf(stat, root) : undefined;
  return {
    ...stat,
    identity: toIdentity(stat, bootId),
    cookies: environs?.flatMap(cookiesIn) ?? [],
    blank: environs?.every((environ) => environ.length === 0) ?? false,
  };
}

function environsOf({ pid, state }: Stat, root: string): readonly Buffer[] {
  // A process's memory is read through its first thread or, after that one has ended, through any other.
  const places = state === "Z" ? list(`${root}/${pid}/task`).map((task) => `${pid}/task/${task}`) : [`${pid}`];
  return places.flatMap((place) => known(read(`${root}/${place}/environ`)) ?? []);
}

function known(text: Buffer | Unread): Buffer | undefined {
  if (text === "failed") throw new Error("The process table could not be read completely.");
  return typeof text === "string" ? undefined : text;
}

/** The entry of its pid, if the pid still belongs to this process. */
function same(identity: Identity, root: string): Stat | "gone" | "unknown" {
  const bootId = bootIdOf(root);
  if (bootId === undefined) return "unknown";
  const stat = statOf(identity.pid, root);
  if (typeof stat === "string") return stat;
  return stat.startTime === identity.startTime && bootId === identity.bootId ? stat : "gone";
}

const toIdentity = ({ pid, startTime }: Stat, bootId: string): Identity => ({ pid, startTime, bootId });

/** A process whose first thread has ended looks dead but is not, as long as other threads run. */
const isDead = ({ state, threads }: Stat): boolean => state === "X" || state === "x" || (state === "Z" && threads <= 1);

function isAlive(pid: number, root: string): boolean {
  const stat = statOf(pid, root);
  return stat === "unknown" || (stat !== "gone" && !isDead(stat));
}

function isChild(pid: number, parent: number, root: string): boolean {
  const stat = statOf(pid, root);
  return typeof stat !== "string" && stat.parent === parent;
}

const isPid = (name: string): boolean => /^[1-9]\d*$/.test(name);

const pidsIn = (names: readonly string[]): readonly number[] => names.filter(isPid).map(Number);
