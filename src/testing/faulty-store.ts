// A store in trouble, at the very call the test names. What is not named goes through untouched.
import { type ControlCode, ControlError } from "../core/control-error.ts";
import type { SessionId } from "../core/ids.ts";
import type { Store } from "../ports.ts";
import type { Gate } from "./gate.ts";

export type StoreVerb = Exclude<keyof Store, "close">;

export type Fault =
  /** Nothing is written, and the caller is told so; `unavailable` tells nothing about what was written. */
  | { readonly kind: "fail"; readonly code: Extract<ControlCode, `store_${string}` | "unavailable" | "internal"> }
  /** It is done, but the caller is told `unavailable`. */
  | { readonly kind: "lose-answer" }
  /** It is done and answered once the gate is open. */
  | { readonly kind: "delay"; readonly until: Gate }
  /** It is done at once, and answered once the gate is open. */
  | { readonly kind: "delay-answer"; readonly until: Gate };

/** Wraps any store. */
export function faultyStore(store: Store): FaultyStore {
  return new FaultyStore(store);
}

export class FaultyStore implements Store {
  readonly #store: Store;
  readonly #calls = new Map<StoreVerb, number>();
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

  /** The trouble is over. */
  heal(): void {
    this.#planned.clear();
    this.#always.clear();
  }

  /** How often a verb was called so far. */
  calls(verb: StoreVerb): number {
    return this.#calls.get(verb) ?? 0;
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
  unattended: Store["unattended"] = (limit) => this.#meet("unattended", () => this.#store.unattended(limit));
  claim: Store["claim"] = (...asked) => this.#meet("claim", () => this.#store.claim(...asked));
  renew: Store["renew"] = (...asked) => this.#meet("renew", () => this.#store.renew(...asked));
  release: Store["release"] = (...asked) => this.#meet("release", () => this.#store.release(...asked));
  trim: Store["trim"] = (session: SessionId, before) => this.#meet("trim", () => this.#store.trim(session, before));
  close: Store["close"] = () => this.#store.close();

  async #meet<T>(verb: StoreVerb, call: () => Promise<T>): Promise<T> {
    const number = this.calls(verb) + 1;
    this.#calls.set(verb, number);
    const fault = this.#planned.get(verb)?.get(number) ?? this.#always.get(verb);
    switch (fault?.kind) {
      case undefined:
        return call();
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
}
