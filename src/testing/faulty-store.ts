// A store that fails on purpose: a planned fault at one call, or trouble of the whole store that lasts. All other calls
// go through untouched.
//
// Invariants
// 1. Every call is counted, whatever happens to it, so that a test can bound retries.
// 2. A planned fault comes first, then a fault of `always`, then the lasting trouble.
import { type ControlCode, ControlError } from "../core/errors.ts";
import type { SessionId } from "../core/model/ids.ts";
import type { Upkeep } from "../core/model/upkeep.ts";
import type { Clock } from "../ports/clock.ts";
import type { Store } from "../ports/store.ts";
import type { Gate } from "./gate.ts";

export type StoreVerb = Exclude<keyof Store, "workers" | "upkeep"> | keyof Upkeep;

type StoreCode = Extract<ControlCode, `store_${string}` | "unavailable" | "internal">;

/** What happens to one call. */
export type Fault =
  /** Nothing is written, and the caller is told so; `unavailable` tells nothing about what was written. */
  | { readonly kind: "fail"; readonly code: StoreCode }
  /** It is done, but the caller is told `unavailable`. */
  | { readonly kind: "lose-answer" }
  /** It is done and answered once the gate is open. */
  | { readonly kind: "delay"; readonly until: Gate }
  /** It is done at once, and answered once the gate is open. */
  | { readonly kind: "delay-answer"; readonly until: Gate };

/** What happens to every call while it lasts. A call is judged by the trouble at the moment it is made. */
export type StoreTrouble =
  | { readonly kind: "none" }
  /** Every write rejects with `code` and changes nothing; with `also: "reads"` every read rejects too. */
  | { readonly kind: "refusing"; readonly code: StoreCode; readonly also?: "reads" }
  /** No call ever settles, `close` included, even after the trouble has ended. `applied`: whether it takes effect. */
  | { readonly kind: "silent"; readonly applied: boolean }
  /** An append is answered after `commitMs`. It takes effect then (default) or at once. Other calls are not delayed. */
  | {
      readonly kind: "slow";
      readonly commitMs: number;
      readonly clock: Clock;
      readonly applied?: "at-once" | "at-end";
    };

/** Wraps any store. */
export function faultyStore(store: Store): FaultyStore {
  return new FaultyStore(store);
}

export class FaultyStore implements Store {
  /** Lasting trouble of the whole store. Set it to switch it on, to change it, or (`none`) to switch it off. */
  trouble: StoreTrouble = NO_TROUBLE;
  readonly #store: Store;
  readonly #calls = new Map<StoreVerb, number>();
  readonly #troubled = new Map<StoreVerb, number>();
  readonly #planned = new Map<StoreVerb, Map<number, Fault>>();
  readonly #always = new Map<StoreVerb, Fault>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** The `at`-th call of `verb` from now on, 1 being the next, meets this fault. */
  plan(verb: StoreVerb, at: number, fault: Fault): void {
    const planned = this.#planned.get(verb) ?? new Map<number, Fault>();
    planned.set(this.calls(verb) + at, fault);
    this.#planned.set(verb, planned);
  }

  /** Every call of `verb` meets this fault, until `heal`. */
  always(verb: StoreVerb, fault: Fault): void {
    this.#always.set(verb, fault);
  }

  /** Removes every fault and ends the trouble. Calls that the trouble has silenced stay without an answer. */
  heal(): void {
    this.#planned.clear();
    this.#always.clear();
    this.trouble = NO_TROUBLE;
  }

  /** How often a verb was called so far. */
  calls(verb: StoreVerb): number {
    return this.#calls.get(verb) ?? 0;
  }

  /** How many of these calls were refused, silenced or slowed down by lasting trouble. */
  troubled(verb: StoreVerb): number {
    return this.#troubled.get(verb) ?? 0;
  }

  append: Store["append"] = (batch) => this.#meet("append", () => this.#store.append(batch));
  load: Store["load"] = (session) => this.#meet("load", () => this.#store.load(session));
  read: Store["read"] = (session, page) => this.#meet("read", () => this.#store.read(session, page));
  grown: Store["grown"] = (...asked) => this.#meet("grown", () => this.#store.grown(...asked));
  run: Store["run"] = (by) => this.#meet("run", () => this.#store.run(by));
  call: Store["call"] = (id) => this.#meet("call", () => this.#store.call(id));
  process: Store["process"] = (id) => this.#meet("process", () => this.#store.process(id));
  processes: Store["processes"] = (...asked) => this.#meet("processes", () => this.#store.processes(...asked));
  runs: Store["runs"] = (session, page) => this.#meet("runs", () => this.#store.runs(session, page));
  session: Store["session"] = (id) => this.#meet("session", () => this.#store.session(id));
  sessions: Store["sessions"] = (page) => this.#meet("sessions", () => this.#store.sessions(page));
  ids: Store["ids"] = (asked) => this.#meet("ids", () => this.#store.ids(asked));
  unattended: Store["unattended"] = (limit) => this.#meet("unattended", () => this.#store.unattended(limit));
  claim: Store["claim"] = (...asked) => this.#meet("claim", () => this.#store.claim(...asked));
  renew: Store["renew"] = (...asked) => this.#meet("renew", () => this.#store.renew(...asked));
  release: Store["release"] = (...asked) => this.#meet("release", () => this.#store.release(...asked));
  trim: Store["trim"] = (session: SessionId, before) => this.#meet("trim", () => this.#store.trim(session, before));
  ready = (): Promise<void> => this.#meet("ready", async () => this.#store.ready?.());
  get inPlace(): Store["inPlace"] {
    const inPlace = this.#store.inPlace?.bind(this.#store);
    return inPlace && (() => this.#meet("inPlace", inPlace));
  }
  get upkeep(): Store["upkeep"] {
    const { upkeep } = this.#store;
    if (upkeep === undefined) return undefined;
    return {
      remove: (session) => this.#meet("remove", () => upkeep.remove(session)),
      survey: (page) => this.#meet("survey", () => upkeep.survey(page)),
      within: (...asked) => this.#meet("within", () => upkeep.within(...asked)),
      usage: () => this.#meet("usage", () => upkeep.usage()),
      reclaim: () => this.#meet("reclaim", () => upkeep.reclaim()),
    };
  }
  close: Store["close"] = () => this.#meet("close", () => this.#store.close());

  async #meet<T>(verb: StoreVerb, call: () => Promise<T>): Promise<T> {
    const number = this.calls(verb) + 1;
    this.#calls.set(verb, number);
    const fault = this.#planned.get(verb)?.get(number) ?? this.#always.get(verb);
    switch (fault?.kind) {
      case undefined:
        return concerns(this.trouble, verb) ? this.#endure(this.trouble, verb, call) : call();
      case "fail":
        throw new ControlError(fault.code, `The store could not ${verb}.`);
      case "lose-answer":
        await call();
        throw new ControlError("unavailable", `The store did not answer to ${verb}.`);
      case "delay":
        await fault.until.opened;
        return call();
      case "delay-answer": {
        const answer = await call();
        await fault.until.opened;
        return answer;
      }
    }
  }
  async #endure<T>(trouble: StoreTrouble, verb: StoreVerb, call: () => Promise<T>): Promise<T> {
    this.#troubled.set(verb, this.troubled(verb) + 1);
    switch (trouble.kind) {
      case "none":
        return call();
      case "refusing":
        throw new ControlError(trouble.code, `The store refused to ${verb}.`);
      case "silent":
        if (trouble.applied) call().catch(ignore);
        return new Promise<never>(ignore);
      case "slow": {
        const answer = trouble.applied === "at-once" ? call() : undefined;
        // Handled when it is returned below; until then a rejection must not count as unhandled.
        answer?.catch(ignore);
        await new Promise<void>((resolve) => trouble.clock.after(trouble.commitMs, resolve));
        return answer ?? call();
      }
    }
  }
}

/** `ready` asks whether a write would succeed, so it meets the same trouble as a write. */
const WRITES: ReadonlySet<StoreVerb> = new Set([
  ...(["append", "claim", "renew", "release", "trim", "ready", "remove", "reclaim"] as const),
]);

function concerns(trouble: StoreTrouble, verb: StoreVerb): boolean {
  switch (trouble.kind) {
    case "none":
      return false;
    case "refusing":
      return WRITES.has(verb) || (trouble.also === "reads" && verb !== "close");
    case "silent":
      return true;
    case "slow":
      return verb === "append";
  }
}

const NO_TROUBLE: StoreTrouble = { kind: "none" };

const ignore = (): void => {};
