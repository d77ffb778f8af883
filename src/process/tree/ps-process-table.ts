// The process table from `ps`, for platforms without /proc: all processes at once, some milliseconds late.
//
// Invariants
// 1. Answers come from one scan, the one that began last. A scan that failed or was read only partly is discarded.
// 2. No process is signalled by a scan older than SCAN_AGE_MS_MAX. Between scan and signal there remain the
//    milliseconds that `ps` takes; our own leader is signalled by its handle, which needs no scan.
// 3. A kill never waits for a scan.
import { execFile, execFileSync } from "node:child_process";
import { ControlError, messageOf } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Leader } from "../containment/containment.ts";
import { bootIdOf, type Identity, namespaceOf, type Presence, type Seen } from "./proc.ts";
import type { Stat } from "./proc-file.ts";
import type { ProcessTable } from "./process-table.ts";
import { type Dialect, PS_ENVIRONMENT, parseBoot, parseTable, psArguments, type Row } from "./ps-output.ts";
import { psWatchdog } from "./ps-watchdog.ts";
import { SharedScan } from "./shared-scan.ts";
import { REAL, type SignalPort } from "./signal.ts";
import type { WatchdogKind } from "./watchdog.ts";

/** The timeout of `ps`, for a very busy machine. It usually takes some twenty milliseconds. */
const PS_MS_MAX = 5_000;

/** A thousand processes with their environments take some megabytes. More is cut off, and the scan discarded. */
const PS_BYTES_MAX = 64 * 1024 * 1024;

/** The maximum age of a scan by which a process is signalled. Usually a signal directly follows its scan. */
const SCAN_AGE_MS_MAX = 250;

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
  /** Scans begun, and the number of the one in `#table`. */
  #begun = 0;
  #shown = 0;

  constructor(options: PsProcessTableOptions) {
    this.#options = options;
    this.watchdogKind = psWatchdog(options.program, options.dialect);
    this.#bootId = options.dialect === "macos" ? macosBootId() : bootIdOf();
  }

  async refresh(): Promise<void> {
    await this.#plain.take();
  }

  refreshNow(): void {
    const { program, dialect } = this.#options;
    const turn = this.#begin();
    try {
      const args = psArguments(dialect, { cookies: false });
      this.#show(turn, parseTable(execFileSync(program, args, { ...LIMITS, stdio: ["ignore", "pipe", "ignore"] })));
    } catch (cause) {
      throw new ControlError("uncontained", `The processes cannot be listed with ps: ${messageOf(cause)}`, { cause });
    }
  }

  bootId(): string | undefined {
    return this.#bootId;
  }

  /** The same process has another start time in /proc: entries of the two sources are not comparable. */
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
      // Until its handle reports an exit the leader is not reaped, and its number is not reused.
      pinsGroup: () => (leader === undefined ? "unknown" : leader.exit === undefined ? "there" : "gone"),
      group: () => this.#table.get(process.pid)?.group,
    };
  }

  /** `ps` does not show open files. */
  openFile(): undefined {
    return undefined;
  }

  hasOpen(): boolean {
    return false;
  }

  #presenceOf(identity: Identity): Presence {
    if (this.#bootId === undefined) return "unknown";
    try {
      if (this.#options.clock.elapsed() - this.#at > SCAN_AGE_MS_MAX) this.refreshNow();
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

/** The UUID that macOS gives each boot; on older versions the boot time, which changes when the clock is set. */
function macosBootId(): string | undefined {
  for (const name of ["kern.bootsessionuuid", "kern.boottime"]) {
    try {
      const found = parseBoot(execFileSync("sysctl", ["-n", name], { ...LIMITS, stdio: ["ignore", "pipe", "ignore"] }));
      if (found !== undefined) return found;
    } catch {
      // This version does not have it.
    }
  }
  return undefined;
}
