// A store whose every call stands still until the scheduler moves it: first it is applied, then it is answered; or it
// fails, or its answer is lost. One per life of the engine, all on the same disk.
//
// Invariants
// 1. What is applied is on the disk, whatever becomes of the life that asked for it.
// 2. A life that is over is answered nothing, and changes nothing.
import { type ControlCode, ControlError } from "../src/core/errors.ts";
import { STORE_WAIT_MS } from "../src/core/limits.ts";
import type { Event } from "../src/core/model/event.ts";
import type { Seq, SessionId } from "../src/core/model/ids.ts";
import type { Appended, Batch, Page, Store } from "../src/ports/store.ts";
import type { MemoryStore } from "../src/store/memory/memory-store.ts";
import type { Facts } from "./facts.ts";
import type { Trace } from "./trace.ts";

/** What outlives a crash. */
export interface Disk {
  readonly store: MemoryStore;
  readonly facts: Facts;
  readonly trace: Trace;
  /** Everything up to here is not kept any more, as far as readers of the log are concerned. */
  readonly trimmedTo: Map<SessionId, Seq>;
  /** How much of a log is read at once, if less than is asked for. */
  readonly pageMax: number | undefined;
  readonly violate: (rule: string, message: string) => void;
  readonly elapsed: () => number;
  /** These facts are on the disk. */
  readonly recorded: (session: SessionId, first: Seq, events: readonly Event[]) => void;
}

export type Verb =
  | ("append" | "load" | "read" | "run" | "call" | "process" | "unattended")
  | ("claim" | "renew" | "release" | "close");

/** What the store does to the calls it gets meanwhile. Like `StoreTrouble` of `agent-belay/testing`. */
export type TroubleKind =
  | {
      readonly kind: "refusing";
      readonly code: "store_full" | "store_locked" | "store_corrupt";
      readonly also?: "reads";
    }
  | { readonly kind: "silent"; readonly applied: boolean }
  | { readonly kind: "slow"; readonly commitMs: number; readonly applied: "at-once" | "at-end" }
  /** An append lands after its caller has given up on it. What its session sends meanwhile is refused after that. */
  | { readonly kind: "late"; readonly commitMs: number; readonly code: "store_full" | "store_locked" };

/** The trouble, when it begins, and for how many steps of the schedule it lasts. */
export type StoreTroubleOptions = TroubleKind & { readonly afterSteps: number; readonly steps: number };

export class Parked {
  readonly verb: Verb;
  readonly about: string;
  /** When it was made, on the clock that never jumps. */
  readonly since: number;
  phase: "waiting" | "applied" | "over" = "waiting";
  readonly #perform: () => Promise<unknown>;
  readonly #resolve: (value: unknown) => void;
  readonly #reject: (error: unknown) => void;
  #result: Promise<unknown> | undefined;

  constructor(
    what: { readonly verb: Verb; readonly about: string; readonly since: number },
    perform: () => Promise<unknown>,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.verb = what.verb;
    this.about = what.about;
    this.since = what.since;
    this.#perform = perform;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  apply(): void {
    if (this.phase !== "waiting") return;
    this.phase = "applied";
    this.#result = this.#perform();
    // Looked at when it is answered; a life that ends before that must not leave an unhandled rejection behind.
    this.#result.catch(ignore);
  }

  answer(): void {
    this.apply();
    this.phase = "over";
    this.#result?.then(this.#resolve, this.#reject);
  }

  fail(code: ControlCode): void {
    this.phase = "over";
    this.#reject(new ControlError(code, `The store could not ${this.verb}.`));
  }
}

export class SimStore implements Store {
  readonly #disk: Disk;
  readonly parked: Parked[] = [];
  /** While false, calls do not stand still: for setting the scene. */
  parks = true;
  over = false;
  /** How many wait for a log to grow. */
  growing = 0;
  /** Its worker shuts down, and takes nothing up any more. */
  leaving = false;
  /** When its worker last asked to keep its leases, and was heard. Undefined: it has not begun to. */
  renewedAt: number | undefined = undefined;
  /** Sessions in which its worker was told that it does not drive them any more. */
  readonly fenced = new Set<SessionId>();

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  append: Store["append"] = (batch) => this.#park("append", batch.session, () => this.#append(batch));
  load: Store["load"] = (session) => this.#park("load", session, () => this.#disk.store.load(session));
  read: Store["read"] = (session, page) =>
    this.#park("read", `${session}>${page.after}`, () => this.#read(session, page));
  run: Store["run"] = (by) => this.#park("run", typeof by === "string" ? by : by.key, () => this.#disk.store.run(by));
  call: Store["call"] = (id) => this.#park("call", id, () => this.#disk.store.call(id));
  process: Store["process"] = (id) => this.#park("process", id, () => this.#disk.store.process(id));
  unattended: Store["unattended"] = async (limit) => {
    const found = await this.#park("unattended", "", () => this.#disk.store.unattended(limit));
    this.renewedAt ??= this.#disk.elapsed();
    return found;
  };
  claim: Store["claim"] = (session, worker, ttlMs) =>
    this.#park("claim", session, () => {
      if (this.leaving) this.#disk.violate("G24", `A worker that leaves has taken the lease of ${session}.`);
      return this.#disk.store.claim(session, worker, ttlMs);
    });
  renew: Store["renew"] = async (worker, ttlMs) => {
    const asked = this.#disk.elapsed();
    const gone = await this.#park("renew", "", () => this.#disk.store.renew(worker, ttlMs));
    // An answer that comes too late is not heard.
    if (this.#disk.elapsed() - asked < STORE_WAIT_MS) this.renewedAt = Math.max(this.renewedAt ?? 0, asked);
    return gone;
  };
  release: Store["release"] = (session, worker) =>
    this.#park("release", session, () => this.#disk.store.release(session, worker));
  processes: Store["processes"] = (session, page) => this.#disk.store.processes(session, page);
  runs: Store["runs"] = (session, page) => this.#disk.store.runs(session, page);
  session: Store["session"] = (id) => this.#disk.store.session(id);
  sessions: Store["sessions"] = (page) => this.#disk.store.sessions(page);
  ids: Store["ids"] = (asked) => this.#disk.store.ids(asked);
  trim: Store["trim"] = (session, before) => this.#disk.store.trim(session, before);
  /** A wait, not a call: it ends when the log has grown, and the scheduler decides when that is. */
  grown: Store["grown"] = async (session, after, signal) => {
    this.growing += 1;
    await this.#disk.store.grown(session, after, signal);
    this.growing -= 1;
  };
  close: Store["close"] = () => this.#park("close", "", async () => undefined);

  /** What the scheduler can still move. */
  get standing(): readonly Parked[] {
    return this.parked;
  }

  drop(parked: Parked): void {
    const at = this.parked.indexOf(parked);
    if (at !== -1) this.parked.splice(at, 1);
  }

  #park<T>(verb: Verb, about: string, perform: () => Promise<T>): Promise<T> {
    if (this.over) return new Promise(ignore);
    if (!this.parks) return perform();
    return new Promise((resolve, reject) => {
      const settle = resolve as (value: unknown) => void;
      this.parked.push(new Parked({ verb, about, since: this.#disk.elapsed() }, perform, settle, reject));
    });
  }

  async #append(batch: Batch): Promise<Appended> {
    const appended = await this.#disk.store.append(batch);
    if (appended.kind !== "appended") {
      this.#disk.trace.note(`  = ${appended.kind}`);
      if (appended.kind === "fenced") this.fenced.add(batch.session);
      return appended;
    }
    const driven = batch.events.find((event) => DRIVERS.has(event.type) && !this.#isSetDown(event));
    if (batch.epoch === undefined && driven !== undefined) {
      this.#disk.violate("G26", `${driven.type} was recorded by somebody who does not drive ${batch.session}.`);
    }
    this.#disk.facts.applied(batch.session, batch.expected + 1, batch.events, batch.at);
    for (const event of batch.events) this.#disk.trace.note(`  = ${batch.session} ${event.type} ${nameOf(event)}`);
    this.#disk.recorded(batch.session, batch.expected + 1, batch.events);
    return appended;
  }

  /** What is set down is going on nowhere, so whoever cancels it can say how it ended. */
  #isSetDown(event: Event): boolean {
    return event.type === "call.settled" && this.#disk.facts.runs.get(event.runId)?.parked === true;
  }

  async #read(session: SessionId, page: { readonly after: Seq; readonly limit: number }): Promise<Page> {
    const gapTo = this.#disk.trimmedTo.get(session) ?? 0;
    // Fewer than asked for is allowed, and only an empty page is the end.
    const limit = Math.min(page.limit, this.#disk.pageMax ?? page.limit);
    if (page.after >= gapTo) return this.#disk.store.read(session, { after: page.after, limit });
    return { ...(await this.#disk.store.read(session, { after: gapTo, limit })), gapTo };
  }
}

/** Facts that only the worker with the lease may record. */
const DRIVERS: ReadonlySet<Event["type"]> = new Set([
  "run.started",
  "run.parked",
  "run.recovered",
  "turn.requested",
  "turn.extended",
  "turn.settled",
  "call.requested",
  "call.settled",
  "process.requested",
  "process.started",
  "process.detached",
  "process.settled",
]);

const nameOf = (event: Event): string =>
  "processId" in event
    ? (event.processId ?? "")
    : "callId" in event
      ? event.callId
      : "runId" in event
        ? event.runId
        : "";

const ignore = (): void => {};
