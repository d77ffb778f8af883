// Cancelling, at each scope. The decision is the core's; here it finds its lane, is carried out although the store may
// be slow, and is told the truth about what had ended before.
import type { Stop } from "../core/call.ts";
import { type CancelKey, type CancelReason, type CancelReceipt, isMeant, type SessionReceipt } from "../core/cancel.ts";
import type { Answer, Command } from "../core/command.ts";
import { type CallId, type ProcessId, type RunId, runOf, type SessionId, sessionOf } from "../core/ids.ts";
import type { Run } from "../core/run.ts";
import type { Store } from "../ports.ts";
import type { Lanes } from "./lanes.ts";
import type { LiveLane } from "./live-lane.ts";
import type { LiveWork } from "./live-work.ts";
import type { Processes } from "./processes.ts";

/** `background: "keep"`: what goes on in the background goes on. */
export interface SessionStop {
  readonly reason: CancelReason;
  readonly background?: "keep" | "stop";
}

type Cancel = Command & { readonly reason: CancelReason };

export type PromptReceipt = Answer<Command & { type: "cancel-key" }>;

interface Parts {
  readonly store: Store;
  readonly lanes: Lanes;
  readonly processes: Processes;
  /** Resolves when what the log says of this lane is known here. */
  readonly load: (lane: LiveLane) => Promise<unknown>;
  /** With an idempotency key, the same request again gets the same answer and cancels nothing newer. */
  readonly submit: <C extends Command>(lane: LiveLane, command: C, key: string | undefined) => Promise<Answer<C>>;
}

export class Cancels {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async session(session: SessionId, stop: SessionStop, key?: string): Promise<SessionReceipt> {
    return this.#submit(this.#parts.lanes.get(session), { type: "cancel-session", ...stop }, key);
  }

  async process(processId: ProcessId, reason: CancelReason, key?: string): Promise<CancelReceipt> {
    const { lanes, store } = this.#parts;
    const lane = lanes.get(sessionOf(processId));
    const receipt = await this.#submit(lane, { type: "cancel-process", processId, reason }, key);
    if (receipt.kind !== "unknown") return receipt;
    const outcome = (await store.process(processId))?.outcome;
    return outcome === undefined ? receipt : { kind: "settled", outcome };
  }

  async run(runId: RunId, reason: CancelReason, key?: string): Promise<CancelReceipt> {
    const here = this.#parts.lanes.home(runId);
    if (here === undefined) return this.#elsewhere(runId, reason, key);
    const receipt = await this.#submit(this.#parts.lanes.get(here), { type: "cancel-run", runId, reason }, key);
    return receipt.kind === "unknown" ? this.#settled(runId) : receipt;
  }

  /** By the key a prompt was given. */
  async prompt(session: SessionId, stop: Omit<CancelKey, "type">, once?: string): Promise<PromptReceipt> {
    const { lanes, store } = this.#parts;
    const receipt = await this.#submit(lanes.get(session), { type: "cancel-key", ...stop }, once);
    if (receipt.kind !== "unknown") return receipt;
    const row = await store.run({ session, key: stop.key });
    if (row?.outcome === undefined || !isMeant(stop, row)) return receipt;
    return { kind: "settled", outcome: row.outcome, runId: row.id };
  }

  async call(callId: CallId, { reason, remind }: Stop, key?: string): Promise<CancelReceipt> {
    const { lanes, store } = this.#parts;
    const session = lanes.home(runOf(callId)) ?? (await store.run(runOf(callId)))?.session;
    if (session === undefined) return { kind: "unknown" };
    const lane = lanes.get(session);
    // @fault no-reminder-by-key
    const receipt = await this.#submit(lane, { type: "cancel-call", callId, reason, remind }, key);
    if (receipt.kind !== "unknown") return receipt;
    const row = await store.call(callId);
    return row === undefined ? receipt : { kind: "settled", outcome: row.outcome };
  }

  /** A cancel behind something that waits for the store does not wait with it: what is live is asked to stop now. */
  #submit<C extends Cancel>(lane: LiveLane, command: C, key?: string): Promise<Answer<C>> {
    // The same if the run is already being stopped by an interrupt that is not durable yet.
    const waits = lane.pumping || lane.doubt || lane.mailbox.length > 0; // @fault cancel-behind-a-key
    const behind = waits || lane.decided.live?.phase === "stopping";
    const repeated = lane.decided.answered.some((answered) => answered.key === key);
    if (behind && !repeated) this.carryOut(lane, command);
    return this.#parts.submit(lane, command, key);
  }

  /** Tells what a stop covers to stop, whatever the state says. Again is harmless. */
  carryOut(lane: LiveLane, command: Command): void {
    stopNow(lane, command);
    this.#parts.processes.stopNow(lane, command);
  }

  async #elsewhere(runId: RunId, reason: CancelReason, key?: string): Promise<CancelReceipt> {
    const row = await this.#parts.store.run(runId);
    if (row === undefined) return { kind: "unknown" };
    const lane = this.#parts.lanes.get(row.session);
    if (row.outcome !== undefined && !(await this.#wasAsked(lane, key))) {
      return { kind: "settled", outcome: row.outcome };
    }
    const receipt = await this.#submit(lane, { type: "cancel-run", runId, reason }, key);
    return receipt.kind === "unknown" ? this.#settled(runId) : receipt;
  }

  /** Whether this key was used before: then it is answered as it was, although the run has ended meanwhile. */
  async #wasAsked(lane: LiveLane, key: string | undefined): Promise<boolean> {
    if (key === undefined) return false;
    await this.#parts.load(lane);
    return lane.decided.answered.some((answered) => answered.key === key);
  }

  async #settled(runId: RunId): Promise<CancelReceipt> {
    const row = await this.#parts.store.run(runId);
    return row?.outcome === undefined ? { kind: "unknown" } : { kind: "settled", outcome: row.outcome };
  }
}

function stopNow(lane: LiveLane, command: Command): void {
  const run = lane.decided.live;
  if (run === undefined || !("reason" in command)) return;
  for (const work of [...lane.works]) if (covers(command, run, work)) work.scope.cancel(command.reason);
}

function covers(command: Command, run: Run, { id }: LiveWork): boolean {
  switch (command.type) {
    case "cancel-session":
    case "close":
      return true;
    case "cancel-run":
      return command.runId === run.id;
    case "cancel-key":
      return isMeant(command, run);
    case "cancel-call":
      return command.callId === id; // @fault sibling-stopped-at-once
    default:
      return false;
  }
}
