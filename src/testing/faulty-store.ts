// A store that fails on purpose: a planned fault of one call, or lasting trouble of the whole store. All other calls
// pass through unchanged.
//
// Invariants
// 1. Every call is counted, whatever happens to it, so that a test can bound retries.
// 2. A planned fault takes precedence over a fault of `always`, and that over lasting trouble.
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
  /** Nothing is written, and the call rejects with `code`. `unavailable` leaves open what was written. */
  | { readonly kind: "fail"; readonly code: StoreCode }
  /** The call takes effect, but rejects with `unavailable`. */
  | { readonly kind: "lose-answer" }
  /** The call takes effect and returns once the gate is open. */
  | { readonly kind: "delay"; readonly until: Gate }
  /** The call takes effect at once, and returns once the gate is open. */
  | { readonly kind: "delay-answer"; readonly until: Gate };

/** What happens to every call while it lasts. The trouble at the time of the call applies. */
export type StoreTrouble =
  | { readonly kind: "none" }
  /** Every write rejects with `code` and changes nothing; with `also: "reads"` every read rejects too. */
  | { readonly kind: "refusing"; readonly code: StoreCode; readonly also?: "reads" }
  /** No call ever settles, `close` included, even after the trouble has ended. `applied`: whether it takes effect. */
  | { readonly kind: "silent"; readonly applied: boolean }
  /** An append returns after `commitMs`. It takes effect then (default) or at once. Other calls are not delayed. */
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
  /** Lasting trouble of the whole store. Set it to start or change it, and to `none` to end it. */
  trouble: StoreTrouble = NO_TROUBLE;
  readonly #store: Store;
  readonly #calls = new Map<StoreVerb, number>();
  readonly #troubled = new Map<StoreVerb, number>();
  readonly #planned = new Map<StoreVerb, Map<number, Fault>>();
  readonly #always = new Map<StoreVerb, Fault>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Applies a fault to the `at`-th call of `verb` from now on, 1 being the next. */
  plan(verb: StoreVerb, at: number, fault: Fault): void {
    const planned = this.#planned.get(verb) ?? new Map<number, Fault>();
    planned.set(this.calls(verb) + at, fault);
    this.#planned.set(verb, planned);
  }

  /** Applies a fault to every call of `verb`, until `heal`. */
  always(verb: StoreVerb, fault: Fault): void {
    this.#always.set(verb, fault);
  }

  /** Removes every fault and ends the trouble. Calls that are silent stay silent. */
  heal(): void {
    this.#planned.clear();
    this.#always.clear();
    this.trouble = NO_TROUBLE;
  }

  /** The number of calls of a verb so far. */
  calls(verb: StoreVerb): number {
    return this.#calls.get(verb) ?? 0;
  }

  /** The number of calls that lasting trouble has refused, silenced or delayed. */
  troubled(verb: StoreVerb): number {
    return this.#troubled.get(verb) ?? 0;
  }

  append: Store["append"] = (batch) => this.#call("append", () => this.#store.append(batch));
  load: Store["load"] = (session) => this.#call("load", () => this.#store.load(session));
  read: Store["read"] = (session, page) => this.#call("read", () => this.#store.read(session, page));
  grown: Store["grown"] = (...args) => this.#call("grown", () => this.#store.grown(...args));
  run: Store["run"] = (by) => this.#call("run", () => this.#store.run(by));
  call: Store["call"] = (id) => this.#call("call", () => this.#store.call(id));
  process: Store["process"] = (id) => this.#call("process", () => this.#store.process(id));
  processes: Store["processes"] = (...args) => this.#call("processes", () => this.#store.processes(...args));
  runs: Store["runs"] = (session, page) => this.#call("runs", () => this.#store.runs(session, page));
  session: Store["session"] = (id) => this.#call("session", () => this.#store.session(id));
  sessions: Store["sessions"] = (page) => this.#call("sessions", () => this.#store.sessions(page));
  ids: Store["ids"] = (args) => this.#call("ids", () => this.#store.ids(args));
  unattended: Store["unattended"] = (limit) => this.#call("unattended", () => this.#store.unattended(limit));
  claim: Store["claim"] = (...args) => this.#call("claim", () => this.#store.claim(...args));
  renew: Store["renew"] = (...args) => this.#call("renew", () => this.#store.renew(...args));
  release: Store["release"] = (...args) => this.#call("release", () => this.#store.release(...args));
  trim: Store["trim"] = (session: SessionId, before) => this.#call("trim", () => this.#store.trim(session, before));
  ready = (): Promise<void> => this.#call("ready", async () => this.#store.ready?.());
  get inPlace(): Store["inPlace"] {
    const inPlace = this.#store.inPlace?.bind(this.#store);
    return inPlace && (() => this.#call("inPlace", inPlace));
  }
  get upkeep(): Store["upkeep"] {
    const { upkeep } = this.#store;
    if (upkeep === undefined) return undefined;
    return {
      remove: (session) => this.#call("remove", () => upkeep.remove(session)),
      survey: (page) => this.#call("survey", () => upkeep.survey(page)),
      within: (...args) => this.#call("within", () => upkeep.within(...args)),
      usage: () => this.#call("usage", () => upkeep.usage()),
      reclaim: () => this.#call("reclaim", () => upkeep.reclaim()),
    };
  }
  close: Store["close"] = () => this.#call("close", () => this.#store.close());

  async #call<T>(verb: StoreVerb, call: () => Promise<T>): Promise<T> {
    const number = this.calls(verb) + 1;
    this.#calls.set(verb, number);
    const fault = this.#planned.get(verb)?.get(number) ?? this.#always.get(verb);
    switch (fault?.kind) {
      case undefined:
        return concerns(this.trouble, verb) ? this.#callInTrouble(this.trouble, verb, call) : call();
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
  async #callInTrouble<T>(trouble: StoreTrouble, verb: StoreVerb, call: () => Promise<T>): Promise<T> {
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

/** `ready` checks whether a write would succeed, so it fails like a write. */
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
