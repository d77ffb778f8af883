// After a crash a turn is asked again. Calls it had already made are answered from the log, each once, so that what
// was finished is not repeated and what is unknown is said to be unknown.
import type { Recorded } from "../core/event.ts";
import { type CallId, type RunId, runOf, type Seq, type SessionId } from "../core/ids.ts";
import { PAGE_EVENTS_MAX } from "../core/limits.ts";
import type { Json } from "../core/prompt.ts";
import type { CallAsked, CallOptions, CallResult, Store } from "../ports.ts";
import { toResult } from "./live-call.ts";

interface Made {
  readonly name: string;
  readonly input: string;
  readonly result: CallResult;
}

export class Replay {
  readonly #made: Made[];

  constructor(made: readonly Made[]) {
    this.#made = [...made];
  }

  /** The first unused answer to the same call. One that was cut off and may be repeated is begun again. */
  take(name: string, input: Json, options: CallOptions): CallResult | undefined {
    const text = JSON.stringify(input);
    const at = this.#made.findIndex((made) => made.name === name && made.input === text);
    const made = at === -1 ? undefined : this.#made.splice(at, 1)[0];
    return made !== undefined && cutOff(made.result) && options.idempotent === true ? undefined : made?.result;
  }
}

/** Its end was not its own: the worker vanished, or was shut down. */
function cutOff(result: CallResult): boolean {
  return result.kind === "lost" || (result.kind === "cancelled" && result.reason.kind === "shutdown");
}

/** Reads what a run did before its worker vanished. */
export async function readReplay(store: Store, session: SessionId, run: RunId, acceptedAt: Seq): Promise<Replay> {
  const names = new Map<string, { readonly name: string; readonly input: string }>();
  const made: Made[] = [];
  for await (const event of readAll(store, session, acceptedAt)) {
    if (event.type === "call.requested" && event.runId === run) {
      names.set(event.callId, { name: event.name, input: JSON.stringify(event.input) });
    }
    if (event.type === "call.settled") {
      const asked = names.get(event.callId);
      if (asked !== undefined) made.push({ ...asked, result: toResult(event.callId, event.outcome, event.result) });
    }
  }
  return new Replay(made);
}

/** A call as it was asked for. */
export async function readCall(
  store: Store,
  session: SessionId,
  callId: CallId,
  acceptedAt: Seq,
): Promise<CallAsked | undefined> {
  for await (const event of readAll(store, session, acceptedAt)) {
    if (event.type === "call.requested" && event.callId === callId) {
      return { callId, name: event.name, input: event.input };
    }
    if (event.type === "run.settled" && event.runId === runOf(callId)) return undefined;
  }
  return undefined;
}

/** The log from a position to its present end. */
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
