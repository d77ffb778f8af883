// Processes as `ps` shows them, for platforms without /proc: everybody at once, some milliseconds late.
//
// Invariants
// 1. Answers come from one table, the one whose look began last. A look that failed, or was read in part, is no table.
// 2. Nobody is signalled by a table older than LOOK_AGE_MS_MAX. Between the look and the signal remain the milliseconds
//    that `ps` takes; a leader of ours is signalled by its handle, and needs no table.
// 3. A kill never waits for a look.
import { execFile, execFileSync } from "node:child_process";
import { ControlError, messageOf } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Leader } from "../containment/containment.ts";
import { bootIdOf, type Identity, namespaceOf, type Presence, type Seen } from "./proc.ts";
import type { Stat } from "./proc-file.ts";
import type { ProcessTable } from "./process-table.ts";
import { type Dialect, PS_ENVIRONMENT, parseBoot, parseTable, psArguments, type Row } from "./ps-output.ts";
import { psBreed } from "./ps-watchdog.ts";
import { SharedScan } from "./shared-scan.ts";
import { REAL, type SignalPort } from "./signal.ts";
import type { WatchdogKind } from "./watchdog.ts";

/** How long `ps` may take, on a machine that is very busy. It takes some twenty milliseconds. */
const PS_MS_MAX = 5_000;

/** A thousand processes with their environments have some megabytes. More is cut off, and then it is no table. */
const PS_BYTES_MAX = 64 * 1024 * 1024;

/** How old a table may be by which somebody is signalled. Right after a look, which is when it is done, it is newer. */
const LOOK_AGE_MS_MAX = 250;

export interface PsProcessTableOptions {
  readonly clock: Clock;
  readonly dialect: Dialect;
  /** The path of `ps`. */
  readonly program: string;
}

export class PsProcessTable implements ProcessTable {
  readonly kind = "ps";
  readonly watchdogKind: WatchdogKind;
  readonly #options: PsProcessTableOptions;
  readonly #bootId: string | undefined;
  readonly #plain = new SharedScan(() => this.#read(false));
  #table: ReadonlyMap<number, Row> = new Map();
  #at = Number.NEGATIVE_INFINITY;
  /** Looks that have begun, and which of them the table is of. */
  #begun = 0;
  #shown = 0;

  constructor(options: PsProcessTableOptions) {
    this.#options = options;
    this.watchdogKind = psBreed(options.program, options.dialect);
    this.#bootId = options.dialect === "macos" ? macosBootId() : bootIdOf();
  }

  async look(): Promise<void> {
    await this.#plain.take();
  }

  lookNow(): void {
    const { program, dialect } = this.#options;
    const turn = this.#begin();
    try {
      const args = psArguments(dialect, { cookies: false });
      this.#show(turn, parseTable(execFileSync(program, args, { ...LIMITS, stdio: ["ignore", "pipe", "ignore"] })));
    } catch (cause) {
      throw new ControlError("uncontained", `ps does not tell who is alive here: ${messageOf(cause)}`, { cause });
    }
  }

  bootId(): string | undefined {
    return this.#bootId;
  }

  /** The same pid at the same moment has another start time in /proc: entries of the two are not compared. */
  namespace(): string {
    return ["ps", namespaceOf()].filter(Boolean).join(" ");
  }

  identityOf(pid: number): Identity | undefined {
    const row = this.#table.get(pid);
    return row === undefined || isDead(row) ? undefined : this.#toIdentity(row);
  }

  isStill(identity: Identity): boolean {
    return this.#presenceOf(identity) !== "gone";
  }

  statOf(pid: number): Stat | "gone" {
    return this.#table.get(pid) ?? "gone";
  }

  childrenOf(pid: number): readonly number[] {
    return [...this.#table.values()].flatMap((one) => (one.parent === pid && !isDead(one) ? [one.pid] : []));
  }

  pids(): readonly number[] {
    return [...this.#table.keys()];
  }

  async listProcesses(meet?: (one: Seen) => void): Promise<readonly Seen[]> {
    const all = await this.#read(true);
    for (const one of all) meet?.(one);
    return all;
  }

  means(leader?: Leader): SignalPort {
    return {
      ...REAL,
      presenceOf: (identity) => this.#presenceOf(identity),
      // As long as its handle has no exit nobody has reaped it, and its number is nobody else's.
      pinsGroup: () => (leader === undefined ? "unknown" : leader.exit === undefined ? "there" : "gone"),
      group: () => this.#table.get(process.pid)?.group,
    };
  }

  /** What `ps` does not show. */
  openFile(): undefined {
    return undefined;
  }

  hasOpen(): boolean {
    return false;
  }

  #presenceOf(identity: Identity): Presence {
    if (this.#bootId === undefined) return "unknown";
    try {
      if (this.#options.clock.elapsed() - this.#at > LOOK_AGE_MS_MAX) this.lookNow();
    } catch {
      return "unknown";
    }
    const row = this.#table.get(identity.pid);
    if (row === undefined || isDead(row) || identity.bootId !== this.#bootId) return "gone";
    return row.startTime === identity.startTime ? "there" : "gone";
  }

  async #read(cookies: boolean): Promise<readonly Seen[]> {
    const { program, dialect } = this.#options;
    const turn = this.#begin();
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const child = execFile(program, psArguments(dialect, { cookies }), LIMITS, (error, stdout) => {
      if (error === null) resolve(stdout);
      else reject(error);
    });
    child.stdin?.destroy();
    const table = parseTable(await promise);
    this.#show(turn, table);
    const living = [...table.values()].filter((row) => !isDead(row) && row.pid !== child.pid);
    return living.map((row) => ({ ...row, identity: this.#toIdentity(row), blank: false }));
  }

  #begin(): number {
    this.#begun += 1;
    return this.#begun;
  }

  #show(turn: number, table: ReadonlyMap<number, Row>): void {
    if (turn < this.#shown) return;
    this.#shown = turn;
    this.#table = table;
    this.#at = this.#options.clock.elapsed();
  }

  #toIdentity({ pid, startTime }: Row): Identity {
    return { pid, startTime, bootId: this.#bootId ?? "unknown" };
  }
}

const LIMITS = { env: PS_ENVIRONMENT, encoding: "latin1", timeout: PS_MS_MAX, maxBuffer: PS_BYTES_MAX } as const;

const isDead = ({ state }: Stat): boolean => state === "Z" || state === "X" || state === "x";

/** The name that macOS gives to each start; on older ones when it was, which changes if somebody sets the clock. */
function macosBootId(): string | undefined {
  for (const name of ["kern.bootsessionuuid", "kern.boottime"]) {
    try {
      const found = parseBoot(execFileSync("sysctl", ["-n", name], { ...LIMITS, stdio: ["ignore", "pipe", "ignore"] }));
      if (found !== undefined) return found;
    } catch {
      // Not known to this version.
    }
  }
  return undefined;
}
