// Cancels, for each kind of target. The core decides; this finds the session of a target, and looks up outcomes of
// settled ones.

import { ControlError } from "../core/errors.ts";
import type { Stop } from "../core/model/call.ts";
import {
  type CancelKey,
  type CancelReason,
  type CancelReceipt,
  isMeant,
  type NamedPrompts,
  type SessionReceipt,
} from "../core/model/cancel.ts";
import type { Answer, Command, Refused } from "../core/model/command.ts";
import { type CallId, type ProcessId, type RunId, runOf, type SessionId, sessionOf } from "../core/model/ids.ts";
import { answeredBefore } from "../core/policy/decide-once.ts";
import type { Store } from "../ports/store.ts";
import type { SessionRegistry } from "./log/session-registry.ts";
import type { SessionState } from "./log/session-state.ts";

/** `background: "keep"`: background processes keep running. `only: "queue"`: so does the live run. */
export interface SessionStop extends Pick<NamedPrompts, "prompts" | "actor"> {
  readonly reason: CancelReason;
  readonly background?: "keep" | "stop";
  readonly only?: "queue";
}

export type PromptReceipt = CancelReceipt & { readonly runId?: RunId };

interface Parts {
  readonly store: Store;
  readonly lanes: SessionRegistry;
  /** Resolves when the lane is loaded and up to date. */
  readonly load: (lane: SessionState) => Promise<unknown>;
  readonly submit: Submit;
}

export type Submit = <C extends Command>(lane: SessionState, command: C, once: Once<Answer<C>>) => Promise<Answer<C>>;

export interface Once<A> {
  /** The same request again with this key gets the same answer and cancels nothing newer. */
  readonly key: string | undefined;
  /** Called in the tick of the decision. */
  readonly decided?: (answer: A) => void;
}

/** Called in the tick of a stop's decision, if it stops or withdraws something. The receipt comes later. */
export type OnStop = () => void;

export class Cancels {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async session(session: SessionId, stop: SessionStop, key?: string, onStop?: OnStop): Promise<SessionReceipt> {
    const lane = this.#parts.lanes.get(session);
    return unrefused(await this.#parts.submit(lane, { type: "cancel-session", ...stop }, once(key, onStop)));
  }

  async process(processId: ProcessId, reason: CancelReason, key?: string, onStop?: OnStop): Promise<CancelReceipt> {
    const { lanes, store } = this.#parts;
    const lane = lanes.get(sessionOf(processId));
    const receipt = await this.#parts.submit(lane, { type: "cancel-process", processId, reason }, once(key, onStop));
    if (receipt.kind !== "unknown") return receipt;
    const outcome = (await store.process(processId))?.outcome;
    return outcome === undefined ? receipt : { kind: "settled", outcome };
  }

  async run(runId: RunId, reason: CancelReason, key?: string, onStop?: OnStop): Promise<CancelReceipt> {
    const here = this.#parts.lanes.sessionOf(runId);
    if (here === undefined) return this.#elsewhere(runId, reason, key, onStop);
    const lane = this.#parts.lanes.get(here);
    const receipt = await this.#parts.submit(lane, { type: "cancel-run", runId, reason }, once(key, onStop));
    return receipt.kind === "unknown" ? this.#settled(runId) : receipt;
  }

  /** Cancels by the key of a prompt. */
  async prompt(session: SessionId, stop: Omit<CancelKey, "type">, key?: string): Promise<PromptReceipt> {
    const { lanes, store } = this.#parts;
    const receipt = unrefused(await this.#parts.submit(lanes.get(session), { type: "cancel-key", ...stop }, { key }));
    if (receipt.kind !== "unknown") return receipt;
    const row = await store.run({ session, key: stop.key });
    if (row?.outcome === undefined || !isMeant(stop, row)) return receipt;
    return { kind: "settled", outcome: row.outcome, runId: row.id };
  }

  async call(callId: CallId, { reason, remind }: Stop, key?: string, onStop?: OnStop): Promise<CancelReceipt> {
    const { lanes, store } = this.#parts;
    const session = lanes.sessionOf(runOf(callId)) ?? (await store.run(runOf(callId)))?.session;
    if (session === undefined) return { kind: "unknown" };
    const lane = lanes.get(session);
    // @fault no-reminder-by-key
    const receipt = await this.#parts.submit(lane, { type: "cancel-call", callId, reason, remind }, once(key, onStop));
    if (receipt.kind !== "unknown") return receipt;
    const row = await store.call(callId);
    return row === undefined ? receipt : { kind: "settled", outcome: row.outcome };
  }

  async #elsewhere(runId: RunId, reason: CancelReason, key?: string, onStop?: OnStop): Promise<CancelReceipt> {
    const row = await this.#parts.store.run(runId);
    if (row === undefined) return { kind: "unknown" };
    const lane = this.#parts.lanes.get(row.session);
    if (row.outcome !== undefined && !(await this.#wasAsked(lane, key))) {
      return { kind: "settled", outcome: row.outcome };
    }
    const receipt = await this.#parts.submit(lane, { type: "cancel-run", runId, reason }, once(key, onStop));
    return receipt.kind === "unknown" ? this.#settled(runId) : receipt;
  }

  /** Whether this key was used before: then it gets the same answer, although the run has ended by now. */
  async #wasAsked(lane: SessionState, key: string | undefined): Promise<boolean> {
    if (key === undefined) return false;
    await this.#parts.load(lane);
    return answeredBefore(lane.decided, key) !== undefined;
  }

  async #settled(runId: RunId): Promise<CancelReceipt> {
    const row = await this.#parts.store.run(runId);
    return row?.outcome === undefined ? { kind: "unknown" } : { kind: "settled", outcome: row.outcome };
  }
}

function once<A extends CancelReceipt | SessionReceipt | Refused>(key: string | undefined, onStop?: OnStop): Once<A> {
  if (onStop === undefined) return { key };
  const decided = (answer: A): void => {
    if ("kind" in answer && (answer.kind === "stopping" || answer.kind === "withdrawn")) onStop();
  };
  return { key, decided };
}

function unrefused<T extends object>(answer: T | Refused): T {
  if ("code" in answer) throw new ControlError(answer.code, answer.message);
  return answer;
}
