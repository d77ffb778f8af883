// The trees that this server has started and not yet seen end, on disk: the next server must end them if this one dies
// (G20).
//
// Invariants
// 1. The intent is on disk before the child is started. It holds the cookie, so a child can be found even if the server
//    died before it recorded the pid.
// 2. A file is written under another name and renamed, so it is never partial. It is not flushed: a power loss ends the
//    processes too.
// 3. An entry is left over only if its server is proven dead. Entries of living servers, and of servers in another PID
//    namespace, which cannot be seen from here, are not touched.
// 4. A sweep removes an entry once its tree is gone, and not before; a sweep that is killed is repeated at the next
//    start.
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ControlError } from "../../core/errors.ts";
import type { ProcessId, SessionId } from "../../core/model/ids.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Mechanism } from "../../ports/spawner.ts";
import { LEDGER_FILE_BYTES_MAX, LEDGER_FILES_MAX, SCAN_PAUSE_MS, SWEEP_MS_MAX } from "../limits.ts";
import { type EndAllOptions, endAll } from "./kill-scan.ts";
import { type Entry, type Intent, parseEntry } from "./ledger-entry.ts";
import { below, type Identity, isSame, nameOf, type Seen } from "./proc.ts";
import { procProcessTable } from "./proc-process-table.ts";
import type { ProcessTable } from "./process-table.ts";
import { send } from "./signal.ts";

export interface LedgerOptions {
  /** Created if missing, with access for this user only. */
  readonly dir: string;
  readonly clock: Clock;
  /** The server that owns the entries. Default this program. */
  readonly owner?: Identity;
  /** Ends and removes a control group: the one kind of tree that is found by name and not by its members. */
  readonly endCgroup?: (path: string) => Promise<void>;
  /** The timeout of a sweep. Default SWEEP_MS_MAX. */
  readonly sweepMs?: number;
  /** Default /proc. */
  readonly processTable?: ProcessTable;
  /** The mount point of /proc, and how processes are signalled. Default the real ones. */
  readonly root?: string;
  readonly send?: NonNullable<EndAllOptions["send"]>;
}

export interface Leftovers {
  /** Entries of dead servers, from this boot of the machine. */
  readonly entries: readonly Entry[];
  /** Files that are not entries or are unreadable. They are left alone. */
  readonly foreign: number;
  /** Entries of running servers, this one included. */
  readonly live: number;
  /** Entries of other PID namespaces, which cannot be checked from here. The next boot of the machine clears them. */
  readonly elsewhere: number;
  /** Entries of an earlier boot of the machine. They are removed. */
  readonly outdated: number;
  /** Files beyond LEDGER_FILES_MAX. */
  readonly unread: number;
}

export interface Swept {
  readonly id: ProcessId;
  readonly sessionId: SessionId;
  readonly mechanism: Mechanism;
  readonly killed: readonly number[];
  /** Processes that were found and still exist. The entry is kept, and the next start tries again. */
  readonly escaped: readonly number[];
  /** False: the timeout expired, or the process table was unreadable. The entry is kept as well. */
  readonly sure: boolean;
}

export function openLedger(options: LedgerOptions): Ledger {
  const processTable = options.processTable ?? procProcessTable(options.root);
  const owner = options.owner ?? ownerBy(processTable);
  try {
    makePrivate(options.dir);
  } catch (error) {
    if (error instanceof ControlError) throw error;
    throw new ControlError("not_started", `The ledger of processes ${options.dir} cannot be used.`, {
      hint: "Make it a directory that the server's user can write to.",
      cause: error,
    });
  }
  return new Ledger(options, processTable, owner);
}

function ownerBy(processTable: ProcessTable): Identity {
  let cause: unknown;
  try {
    processTable.refreshNow?.();
  } catch (error) {
    cause = error;
  }
  const owner = processTable.bootId() === undefined ? undefined : processTable.identityOf(process.pid);
  if (owner !== undefined) return owner;
  const table = processTable.kind === "ps" ? "ps" : "/proc";
  throw new ControlError(
    "uncontained",
    `${table} cannot identify this server, so the next one could not find what it leaves behind.`,
    {
      cause,
      ...(processTable.kind === "ps" ? {} : { hint: MOUNT_PROC }),
    },
  );
}

/** Every tier needs /proc. */
const MOUNT_PROC =
  "Mount /proc: mount -t proc proc /proc, or leave it to the container (with `unshare --pid` add --mount-proc).";

export class Ledger {
  readonly owner: Identity;
  readonly #options: LedgerOptions;
  readonly #processTable: ProcessTable;
  readonly #namespace: string | undefined;
  /** Entries that we have written and not removed. */
  readonly #own = new Map<ProcessId, Entry>();

  constructor(options: LedgerOptions, processTable: ProcessTable, owner: Identity) {
    this.#options = options;
    this.#processTable = processTable;
    this.owner = owner;
    this.#namespace = processTable.namespace();
  }

  /**
   * Call before the start. Throws `not_started` if the entry cannot be written: a tree that could not be found again is
   * not started.
   */
  intend(intent: Intent): void {
    const namespace = this.#namespace === undefined ? {} : { namespace: this.#namespace };
    const entry: Entry = { ...intent, ...namespace, owner: this.owner, phase: "intent" };
    if (this.#own.has(intent.id) || this.#read(fileOf(intent.id)) !== "none") {
      throw new ControlError("conflict", `The process ${intent.id} exists already, or is not fully cleaned up.`);
    }
    try {
      this.#write(entry);
    } catch (error) {
      throw new ControlError(
        "not_started",
        `${intent.id} was not started: the ledger of processes cannot be written.`,
        {
          hint: `Make room, or make ${this.#options.dir} writable.`,
          cause: error,
        },
      );
    }
    this.#own.set(intent.id, entry);
  }

  /** Call after the start, in the same tick. Returns whether it was written; if not, the cookie identifies the tree. */
  spawned(id: ProcessId, child: Identity): boolean {
    const entry = this.#own.get(id);
    if (entry === undefined) return false;
    const next: Entry = { ...entry, phase: "spawned", child };
    try {
      this.#write(next);
    } catch {
      return false;
    }
    this.#own.set(id, next);
    return true;
  }

  /**
   * Call when the tree is gone. Returns whether the entry was removed; if not, a later sweep finds no process for it.
   */
  reaped(id: ProcessId): boolean {
    this.#own.delete(id);
    return this.#remove(fileOf(id));
  }

  /** What dead servers have left. */
  leftovers(): Leftovers {
    const names = readdirSync(this.#options.dir);
    const counts = { foreign: 0, live: 0, elsewhere: 0, outdated: 0 };
    const entries: Entry[] = [];
    const read = names.slice(0, LEDGER_FILES_MAX).map((name) => ({ name, entry: this.#read(name) }));
    // Refresh after reading: every server that had written an entry by then, and is alive, is seen.
    this.#processTable.refreshNow?.();
    for (const { name, entry } of read) {
      const standing = this.#standingOf(name, entry);
      if (typeof standing !== "string") entries.push(standing);
      else if (standing !== "none") counts[standing] += 1;
    }
    return { entries, ...counts, unread: Math.max(0, names.length - LEDGER_FILES_MAX) };
  }

  /**
   * Ends what is left of them. Never rejects; what could not be ended is reported, and tried again at the next start.
   */
  async sweep(entries: readonly Entry[]): Promise<readonly Swept[]> {
    if (entries.length === 0) return [];
    const { clock, sweepMs = SWEEP_MS_MAX } = this.#options;
    const means = this.#processTable.means();
    const trace = new Trace(entries, clock);
    const [stuck, ended] = await Promise.all([
      this.#endCgroups(entries, sweepMs),
      endAll({
        find: async (meet) =>
          trace.find(await this.#processTable.listProcesses((one) => trace.knows(one) && meet(one.identity))),
        clock,
        freezeFirst: true,
        deadlineMs: sweepMs,
        isStill: (identity) => this.#processTable.isStill(identity),
        send: this.#options.send ?? ((identity, signal) => send(identity, signal, means)),
      }),
    ]);
    return entries.map((entry) => {
      const { id, sessionId, mechanism, cgroup } = entry;
      const escaped = trace.of(entry, ended.left);
      const seen = ended.sure || (escaped.length === 0 && trace.isEmpty(entry));
      const sure = seen && (cgroup === undefined || !stuck.has(cgroup));
      if (sure && escaped.length === 0) this.#remove(fileOf(id));
      return { id, sessionId, mechanism, killed: trace.of(entry, ended.killed), escaped, sure };
    });
  }

  /** Returns those that could not be ended in time. */
  async #endCgroups(entries: readonly Entry[], ms: number): Promise<ReadonlySet<string>> {
    const { clock, endCgroup } = this.#options;
    const stuck = new Set(entries.flatMap(({ cgroup }) => cgroup ?? []));
    if (endCgroup === undefined || stuck.size === 0) return stuck;
    const late = Promise.withResolvers<void>();
    const forget = clock.after(ms, late.resolve);
    const all = Promise.allSettled(
      [...stuck].map(async (path) => {
        await endCgroup(path);
        stuck.delete(path);
      }),
    );
    await Promise.race([all, late.promise]);
    forget();
    return new Set(stuck);
  }

  #standingOf(
    name: string,
    entry: Entry | "foreign" | "draft" | "none",
  ): Entry | "foreign" | "live" | "elsewhere" | "outdated" | "none" {
    if (typeof entry === "string") return entry === "draft" ? this.#tidy(name) : entry;
    // Our own entries are never left over, even if we cannot see ourselves: a live tree is ended by us, not by a sweep.
    if (isSame(entry.owner, this.owner)) return "live";
    if (entry.owner.bootId !== this.owner.bootId) {
      this.#remove(name);
      return "outdated";
    }
    if (entry.namespace !== this.#namespace) return "elsewhere";
    return this.#processTable.isStill(entry.owner) ? "live" : entry;
  }

  /** A draft exists for microseconds, unless its writer was killed meanwhile. */
  #tidy(name: string): "foreign" | "none" {
    const [, pid, startTime] = DRAFT.exec(name) ?? [];
    const writer = { pid: Number(pid), startTime: Number(startTime), bootId: this.owner.bootId };
    if (isSame(writer, this.owner) || this.#processTable.isStill(writer)) return "none";
    return this.#remove(name) ? "none" : "foreign";
  }

  #read(name: string): Entry | "foreign" | "draft" | "none" {
    if (DRAFT.test(name)) return "draft";
    if (!name.endsWith(SUFFIX)) return "foreign";
    const path = join(this.#options.dir, name);
    try {
      const stat = statSync(path, { throwIfNoEntry: false });
      if (stat === undefined) return "none";
      if (!stat.isFile() || stat.size > LEDGER_FILE_BYTES_MAX) return "foreign";
      const entry = parseEntry(readFileSync(path, "utf8"));
      return entry !== undefined && fileOf(entry.id) === name ? entry : "foreign";
    } catch {
      return "foreign";
    }
  }

  /** If the directory was removed meanwhile, all live entries are written again, because a sweep must find them. */
  #write(entry: Entry): void {
    try {
      this.#put(entry);
    } catch (error) {
      if (!isMissing(error)) throw error;
      makePrivate(this.#options.dir);
      for (const own of this.#own.values()) if (own.id !== entry.id) this.#put(own);
      this.#put(entry);
    }
  }

  #put(entry: Entry): void {
    const { pid, startTime } = this.owner;
    const draft = join(this.#options.dir, `.${entry.id}.${pid}-${startTime}.draft`);
    try {
      writeFileSync(draft, JSON.stringify(entry), { mode: 0o600 });
      renameSync(draft, join(this.#options.dir, fileOf(entry.id)));
    } catch (error) {
      rmSync(draft, { force: true });
      throw error;
    }
  }

  #remove(name: string): boolean {
    try {
      rmSync(join(this.#options.dir, name), { force: true });
      return true;
    } catch {
      return false;
    }
  }
}

/**
 * Which processes belonged to which entry. Recorded during the scans, because a dead process no longer shows its marks.
 */
class Trace {
  readonly #entries: readonly Entry[];
  readonly #clock: Clock;
  readonly #found = new Map<Entry, Set<string>>();
  readonly #emptySince = new Map<Entry, number>();
  #lookedAt = 0;

  constructor(entries: readonly Entry[], clock: Clock) {
    this.#entries = entries;
    this.#clock = clock;
  }

  /** Whether it belongs to one of the entries, by its cookie or its identity. */
  knows(one: Seen): boolean {
    if (one.pid === process.pid) return false;
    const own = this.#entries.filter((entry) => isMarked(one, entry));
    for (const entry of own) this.#note(entry, [one.identity]);
    return own.length > 0;
  }

  find(all: readonly Seen[]): readonly Identity[] {
    // This server may itself have been started by such a tree. It ends neither itself nor its own processes.
    const others = all.filter((one) => one.pid !== process.pid);
    this.#lookedAt = this.#clock.elapsed();
    return this.#entries.flatMap((entry) => {
      const marked = others.filter((one) => isMarked(one, entry));
      const pids = marked.map((one) => one.pid);
      const all = [...marked, ...below(others, pids)].map((one) => one.identity);
      if (all.length > 0) this.#emptySince.delete(entry);
      else if (!this.#emptySince.has(entry)) this.#emptySince.set(entry, this.#lookedAt);
      this.#note(entry, all);
      return all;
    });
  }

  #note(entry: Entry, identities: readonly Identity[]): void {
    const own = this.#found.get(entry) ?? new Set();
    for (const identity of identities) own.add(nameOf(identity));
    this.#found.set(entry, own);
  }

  /** Whether no process of it was found for long enough, even if another entry still delays the sweep. */
  isEmpty(entry: Entry): boolean {
    const since = this.#emptySince.get(entry);
    return since !== undefined && this.#lookedAt - since >= SCAN_PAUSE_MS;
  }

  of(entry: Entry, identities: readonly Identity[]): readonly number[] {
    const own = this.#found.get(entry);
    return identities.flatMap((one) => (own?.has(nameOf(one)) ? [one.pid] : []));
  }
}

const isMarked = (one: Seen, entry: Entry): boolean =>
  one.cookies.includes(entry.cookie) || (entry.phase === "spawned" && isSame(one.identity, entry.child));

const isMissing = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "ENOENT";

const SUFFIX = ".json";
const DRAFT = /^\.proc_.+\.(\d+)-(\d+)\.draft$/;

const fileOf = (id: ProcessId): string => `${id}${SUFFIX}`;

/** A writer of this directory chooses processes that we kill, so it is private to our user. */
function makePrivate(dir: string): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const { uid, mode } = statSync(dir);
  if (process.getuid !== undefined && uid !== process.getuid()) {
    throw new ControlError("invalid", `The directory ${dir} belongs to another user.`, {
      hint: "Its files decide which processes are ended, so it must belong to the server's user.",
    });
  }
  if ((mode & 0o077) !== 0) chmodSync(dir, 0o700);
}
