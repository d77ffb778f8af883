// Who is alive, as Linux tells it in /proc.
//
// A pid alone names nobody: it is given to somebody else sooner or later. With the time it started, counted since the
// machine did, it names one process for ever.
//
// What concerns one pid is read at once, because the kill path cannot wait. Environments are read in a thread
// (`scan-thread.ts`): such a read waits for the memory of its process.
import { readlinkSync } from "node:fs";
import { opendir } from "node:fs/promises";
import { cookiesIn } from "../launch/environment.ts";
import { DESCENDANTS_MAX, NEWBORN_MAX, NEWBORN_ROUNDS, SCAN_SLICE } from "../limits.ts";
import { listProc as list, parseStat, readProc as read, type Stat, type Unread } from "./proc-file.ts";

export const PROC = "/proc";

export interface Identity {
  readonly pid: number;
  /** Clock ticks from the start of the machine to its own; where `ps` tells it, the digits of the second. */
  readonly startTime: number;
  /** Names the start of the machine. */
  readonly bootId: string;
}

/** One text for one process: a key for maps. */
export const nameOf = ({ pid, startTime, bootId }: Identity): string => `${pid} ${startTime} ${bootId}`;

export const isSame = (one: Identity, other: Identity): boolean => nameOf(one) === nameOf(other);

/** `unknown`: it could not be read, for want of a file descriptor or of the right to. Never taken for either. */
export type Presence = "there" | "gone" | "unknown";

/** The entry of one pid, whoever has it now. */
export function statOf(pid: number, root: string = PROC): Stat | "gone" | "unknown" {
  const text = read(`${root}/${pid}/stat`);
  if (typeof text === "string") return text === "gone" ? "gone" : "unknown";
  return parseStat(pid, text.toString("latin1")) ?? "unknown";
}

/** The letter of its state. Undefined: nobody has this pid. */
export function stateOf(pid: number, root: string = PROC): string | undefined {
  const stat = statOf(pid, root);
  return typeof stat === "string" ? undefined : stat.state;
}

/** Who has this pid now. Undefined: nobody who is alive, or nobody can tell. */
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

/** Whether this very process is alive. One that cannot be looked at counts as alive: nobody is declared dead unseen. */
export const isStill = (identity: Identity, root: string = PROC): boolean => presenceOf(identity, root) !== "gone";

/**
 * Whether this identity leads a group of its own number. A leader that is dead and not reaped still does: as long as it
 * is in the table nobody else can get its number.
 */
export function pinsGroup(leader: Identity, root: string = PROC): Presence {
  const stat = same(leader, root);
  if (typeof stat === "string") return stat;
  return stat.group === leader.pid && stat.state !== "X" && stat.state !== "x" ? "there" : "gone";
}

/**
 * The living children of one process, of whichever of its threads. The kernel may leave somebody out while others exit,
 * so an empty answer proves nothing.
 */
export const childrenOf = (pid: number, root: string = PROC): readonly number[] => [...livingChildren(pid, root)];

/** Each is looked at when it is wanted. */
function* livingChildren(pid: number, root: string): Generator<number> {
  const tasks = list(`${root}/${pid}/task`);
  const lists = tasks.map((task) => read(`${root}/${pid}/task/${task}/children`));
  // A kernel may be built without these lists. Then, and only then, everybody is asked for their parent.
  const bare = lists.length > 0 && lists.every((one) => one === "gone") && typeof statOf(pid, root) !== "string";
  const pids = bare
    ? pidsIn(list(root)).filter((one) => isChild(one, pid, root))
    : lists.flatMap((one) => (typeof one === "string" ? [] : pidsIn(one.toString("latin1").split(" "))));
  for (const one of pids) if (isAlive(one, root)) yield one;
}

/** Everybody below one process, nearest first, itself excluded. At most `max`. */
export function descendantsOf(pid: number, root: string = PROC, max = DESCENDANTS_MAX): readonly number[] {
  const found = new Set<number>();
  const open = [pid];
  for (const parent of open) {
    for (const child of livingChildren(parent, root)) {
      // A pid that is reused while we walk could lead in a circle.
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
  /** Its marks, if they were asked for and may be read. */
  readonly cookies: readonly string[];
  /** Whether its environment was asked for, and there was nothing in it. */
  readonly blank: boolean;
}

export interface Looking {
  /** Environments may take long to read, so this is for a thread, and for tests. */
  readonly cookies: boolean;
  readonly meet?: (one: Seen) => void;
  /** Processes whose environment is left alone. */
  readonly unread?: ReadonlySet<number>;
  /** Called before an environment is read. */
  readonly reading?: (pid: number) => void;
}

/**
 * All living processes, in one pass, without those of the kernel. Rejects if the table cannot be read to its end: a
 * part of it would look like death. `meet` is called at once for each.
 */
export async function listProcesses(options: Looking, root: string = PROC): Promise<readonly Seen[]> {
  const bootId = bootIdOf(root);
  if (bootId === undefined) throw new Error(`${root} does not tell which start of the machine this is.`);
  const seen = new Map<number, Seen>();
  const blank: number[] = [];
  const look = (pid: number): void => {
    const one = see(pid, bootId, options, root);
    if (one === undefined) return;
    if (one.blank) blank.push(pid);
    seen.set(pid, one);
    options.meet?.(one);
  };
  const before = lastPid(root);
  for await (const entry of await opendir(root, { bufferSize: SCAN_SLICE })) {
    if (isPid(entry.name)) look(Number(entry.name));
  }
  // Who has no environment may have been between two programs. By now it is in the second.
  for (const pid of blank.splice(0)) look(pid);
  for (const pid of newborn(before, root)) if (!seen.has(pid)) look(pid);
  return [...seen.values()];
}

/**
 * Those who were born while we looked. Somebody who forks and exits all the time is never where a list says; but the
 * kernel tells which number it has given out last, and those in between are few.
 */
function* newborn(before: number | undefined, root: string): Generator<number> {
  let known = before;
  for (let round = 0; round < NEWBORN_ROUNDS; round += 1) {
    const last = lastPid(root);
    // Lower than before: the numbers have begun again. Then the next look is the one that counts.
    if (known === undefined || last === undefined || last <= known || last - known > NEWBORN_MAX) return;
    for (let pid = known + 1; pid <= last; pid += 1) if (isFirstThread(pid, root)) yield pid;
    known = last;
  }
}

/** `0.1 0.2 0.3 1/234 5678`: the last word is the pid that was given out last. */
function lastPid(root: string): number | undefined {
  const text = read(`${root}/loadavg`);
  const last = typeof text === "string" ? Number.NaN : Number(text.toString("latin1").trim().split(" ").at(-1));
  return Number.isSafeInteger(last) ? last : undefined;
}

/** Threads have numbers of their own, which no listing shows and every question answers. */
function isFirstThread(pid: number, root: string): boolean {
  const text = read(`${root}/${pid}/status`);
  return typeof text !== "string" && new RegExp(`^Tgid:\\s*${pid}$`, "m").test(text.toString("latin1"));
}

/** Those of `all` who are below one of `tops`, the tops themselves excluded. */
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
 * Everybody whose environment carries the cookie. Whose environment may not be read is left out: somebody else's, or a
 * program with rights of its own. `meet` hears of each at once.
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

/** Names the start of this machine. Kept, because it cannot change while we run. */
export function bootIdOf(root: string = PROC): string | undefined {
  const known = bootIds.get(root);
  if (known !== undefined) return known;
  const text = read(`${root}/sys/kernel/random/boot_id`);
  if (typeof text === "string") return undefined;
  const bootId = text.toString("latin1").trim();
  bootIds.set(root, bootId);
  return bootId;
}

/** Names the table of pids that we see: in another container the same pid is somebody else. */
export function namespaceOf(root: string = PROC): string | undefined {
  try {
    return readlinkSync(`${root}/self/ns/pid`);
  } catch {
    return undefined;
  }
}

function see(pid: number, bootId: string, { cookies, unread, reading }: Looking, root: string): Seen | undefined {
  // First who it is, then what it carries: should the pid change hands in between, the cookie is held against an
  // identity that is gone, and nobody is signalled for it.
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
  // The memory of a process is seen through its first thread, and where that has ended, through any other.
  const places = state === "Z" ? list(`${root}/${pid}/task`).map((task) => `${pid}/task/${task}`) : [`${pid}`];
  return places.flatMap((place) => known(read(`${root}/${place}/environ`)) ?? []);
}

function known(text: Buffer | Unread): Buffer | undefined {
  if (text === "failed") throw new Error("The table of processes could not be read to its end.");
  return typeof text === "string" ? undefined : text;
}

/** The entry of its pid, if it is still this one's. */
function same(identity: Identity, root: string): Stat | "gone" | "unknown" {
  const bootId = bootIdOf(root);
  if (bootId === undefined) return "unknown";
  const stat = statOf(identity.pid, root);
  if (typeof stat === "string") return stat;
  return stat.startTime === identity.startTime && bootId === identity.bootId ? stat : "gone";
}

const toIdentity = ({ pid, startTime }: Stat, bootId: string): Identity => ({ pid, startTime, bootId });

/** A process whose first thread has ended looks dead and is not, as long as others go on. */
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
