// Replays calls. After a crash a turn is repeated: calls that it had made get their recorded results, each once, so
// that completed work is not repeated and unknown results are reported as unknown.
//
// A turn may be repeated several times. All repetitions are one turn to the agent: the results of the last one replace
// missing results of earlier ones. Other turns of the run do not count, even if their calls are equal.

import { PAGE_EVENTS_MAX } from "../../core/limits.ts";
import type { Outcome } from "../../core/model/cancel.ts";
import type { Event, Recorded } from "../../core/model/event.ts";
import { type CallId, type RunId, runOf, type Seq, type SessionId, type TurnId } from "../../core/model/ids.ts";
import type { Json } from "../../core/model/prompt.ts";
import { isCutOff } from "../../core/read/transcript.ts";
import type { CallDetails, CallOptions, CallResult } from "../../ports/agent.ts";
import type { Store } from "../../ports/store.ts";
import { toResult } from "../work/call-result.ts";

interface RecordedCall {
  readonly name: string;
  readonly input: string;
  readonly idempotent: boolean;
  /** Number of turns that had been requested before it. */
  readonly turn: number;
}

interface Made extends RecordedCall {
  readonly result: CallResult;
}

export class Replay {
  readonly #made: Made[];

  constructor(made: readonly Made[]) {
    this.#made = [...made];
  }

  /** The first unused result of the same call. Undefined for an idempotent call that was cut off: it is begun again. */
  take(name: string, input: Json, options: CallOptions): CallResult | undefined {
    const asked = { name, input: JSON.stringify(input) };
    const at = this.#made.findIndex((made) => isSame(made, asked));
    const made = at === -1 ? undefined : this.#made.splice(at, 1)[0];
    // @fault unknown-call-repeated
    return made !== undefined && isCutOff(made.result) && options.idempotent === true ? undefined : made?.result;
  }
}

/** Reads the calls that a turn made before its worker vanished, including all its repetitions. */
export async function readReplay(store: Store, session: SessionId, turnId: TurnId, acceptedAt: Seq): Promise<Replay> {
  const past = new Past(runOf(turnId));
  for await (const event of readAll(store, session, acceptedAt)) {
    past.take(event);
    // Later calls are its own.
    if (event.type === "turn.requested" && event.turnId === turnId) break;
  }
  return new Replay(past.made);
}

/** The calls of the last requested turn, and of the cut-off turns before it that it repeats. */
class Past {
  readonly made: Made[] = [];
  readonly #run: RunId;
  readonly #asked = new Map<CallId, RecordedCall>();
  #turns = 0;
  #end: Outcome | undefined;

  constructor(run: RunId) {
    this.#run = run;
  }

  take(event: Event): void {
    if (!("runId" in event) || event.runId !== this.#run) return;
    if (event.type === "turn.requested") this.#begin();
    if (event.type === "turn.settled") this.#end = event.outcome;
    if (event.type === "call.requested") {
      const { callId, name, input, idempotent = false } = event;
      this.#asked.set(callId, { name, input: JSON.stringify(input), idempotent, turn: this.#turns });
    }
    if (event.type === "call.settled") {
      const asked = this.#asked.get(event.callId);
      if (asked !== undefined) this.#add({ ...asked, result: toResult(event) });
    }
  }

  #begin(): void {
    // @fault earlier-turn-answers-for-a-later-one
    if (this.#end !== undefined && !isCutOff(this.#end)) this.made.length = 0;
    this.#turns += 1;
  }

  /** An idempotent call that was cut off in an earlier turn is replaced by the one that was begun instead of it. */
  #add(made: Made): void {
    const replaces = (one: Made): boolean => isSame(one, made) && one.turn < made.turn && isCutOff(one.result);
    const stood = made.idempotent ? this.made.findIndex(replaces) : -1;
    if (stood === -1) this.made.push(made);
    else this.made[stood] = made; // @fault finished-call-repeated-in-the-third-life
  }
}

const isSame = (one: Pick<RecordedCall, "name" | "input">, other: Pick<RecordedCall, "name" | "input">): boolean =>
  one.name === other.name && one.input === other.input;

/** A call as it was requested. */
export async function readCall(
  store: Store,
  session: SessionId,
  callId: CallId,
  acceptedAt: Seq,
): Promise<CallDetails | undefined> {
  for await (const event of readAll(store, session, acceptedAt)) {
    if (event.type === "call.requested" && event.callId === callId) {
      return { callId, name: event.name, input: event.input };
    }
    if (event.type === "run.settled" && event.runId === runOf(callId)) return undefined;
  }
  return undefined;
}

/** Reads the log from a position to its current end. */
export async function* readAll(store: Store, session: SessionId, after: Seq): AsyncGenerator<Recorded, void> {
  let cursor = after;
  for (;;) {
    const page = await store.read(session, { after: cursor, limit: PAGE_EVENTS_MAX });
    yield* page.events;
    const last = page.events.at(-1);
    if (last === undefined) return;
    cursor = last.seq;
  }
}
