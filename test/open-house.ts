// What the library's tests share: an agent that does what the prompt says, with gates instead of time.

import type { Recorded } from "../src/core/event.ts";
import { type Belay, type BelayOptions, openBelay } from "../src/library/belay.ts";
import type { Session } from "../src/library/session.ts";
import type { Notice, Turn } from "../src/ports.ts";

export interface Gate {
  readonly passed: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

/** Rejects when asked to stop; never resolves otherwise. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
  });
}

export interface House {
  readonly belay: Belay;
  readonly notices: Notice[];
  /** Prompts whose turns have begun, in order. */
  readonly begun: string[];
  /** Opens when a turn with this prompt has begun. */
  began(text: string): Promise<void>;
}

type Act = (turn: Turn) => Promise<string | undefined> | string | undefined;

/** The prompt names what its turn does; what it does not name is answered with "done". */
export async function openHouse(
  acts: Readonly<Record<string, Act>> = {},
  options: Partial<BelayOptions> = {},
): Promise<House> {
  const notices: Notice[] = [];
  const begun: string[] = [];
  const gates = new Map<string, Gate>();
  const gateOf = (text: string): Gate => {
    const known = gates.get(text) ?? gate();
    gates.set(text, known);
    return known;
  };
  const belay = await openBelay({
    store: ":memory:",
    graceMs: 50,
    onNotice: (notice) => notices.push(notice),
    agent: async (turn) => {
      begun.push(turn.prompt.text);
      gateOf(turn.prompt.text).open();
      const act = acts[turn.prompt.text];
      return act === undefined ? "done" : await act(turn);
    },
    ...options,
  });
  return { belay, notices, begun, began: (text) => gateOf(text).passed };
}

/** Waits for as long as it takes to be cancelled. */
export const waits: Act = (turn) => untilAborted(turn.signal);
/** Never ends, whatever it is asked. */
export const deaf: Act = () => new Promise(() => {});

/** Everything in a session's log by now. */
export async function logOf(session: Session): Promise<readonly Recorded[]> {
  const head = (await session.explain()).asOf;
  const events: Recorded[] = [];
  for await (const event of session.events()) {
    if ("seq" in event) events.push(event);
    if (events.at(-1)?.seq === head) break;
  }
  return events;
}
