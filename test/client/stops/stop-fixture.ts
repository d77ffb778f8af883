// A server with work in flight for one cell of the table, and the evidence of what became of it: read off the server,
// never off what the client was answered.

import { ControlError } from "../../../src/core/errors.ts";
import type { Agent } from "../../../src/ports/agent.ts";
import type { RunControl } from "../../../src/ports/control.ts";
import { type Belay, openBelay } from "../../../src/sdk/belay.ts";
import type { Session } from "../../../src/sdk/session.ts";
import { MemoryStore } from "../../../src/store/memory/memory-store.ts";
import { systemClock } from "../../../src/system/system-clock.ts";
import { Gate } from "../../../src/testing/gate.ts";
import { scriptedSpawner } from "../../../src/testing/scripted-spawner.ts";
import { hasOwnSession, type InFlight, isProcess, isUnanswered } from "./stop-methods.ts";

/** What a stop can name. */
export interface Target {
  readonly inFlight: InFlight;
  readonly session: string;
  /** The key of the prompt. */
  readonly key: string;
  /** The id of the run, call, question or process. Undefined: a prompt that has no answer. */
  readonly id: string | undefined;
  /** The run of it. Undefined: there is none, or it is not known yet. */
  readonly runId: string | undefined;
}

/** Sends a prompt, as a client of that transport does. */
export type Prompter = (target: Pick<Target, "session" | "key" | "inFlight">, text: string) => Promise<unknown>;

export const KEY = "k";
export const AFTER = "after";

const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, no) => {
    if (signal.aborted) no(signal.reason);
    signal.addEventListener("abort", () => no(signal.reason));
  });

/** Nothing of it ends by itself, except what is prompted behind a stop. */
const agent: Agent = async (turn) => {
  const { signal, prompt } = turn;
  if (prompt.text === AFTER) return "done";
  if (prompt.text === "a call") await turn.call("slow", {}, (call) => untilAborted(call.signal));
  if (prompt.text === "a question") await turn.call("ask", {}, () => "", { approval: { note: "?" } });
  return untilAborted(signal);
};

export class StoppableServer {
  readonly #store = Object.assign(new MemoryStore({ clock: systemClock }), { close: async () => {} });
  belay!: Belay;

  static async open(): Promise<StoppableServer> {
    const server = new StoppableServer();
    await server.#open();
    return server;
  }

  async restart(): Promise<void> {
    await this.belay.close();
    await this.#open();
  }

  close(): Promise<unknown> {
    return this.belay.close({ mode: "cancel", limitMs: 500 });
  }

  /** Brings it in flight; what is unanswered is left to be prompted. `prompt`: how a client begins a session. */
  async arrange(inFlight: InFlight, sessionId: string, prompt: Prompter | undefined): Promise<Target> {
    const base = { inFlight, session: sessionId, key: KEY, id: undefined, runId: undefined };
    if (isUnanswered(inFlight)) return base;
    if (hasOwnSession(inFlight)) return this.#ownRun(inFlight, base, prompt);
    const session = this.belay.session(sessionId);
    if (isProcess(inFlight)) return { ...base, id: await process(session, inFlight) };
    if (inFlight === "a queued run" || inFlight === "a steer") {
      await begun(session, session.prompt("before"), "turn.requested");
      const run = session.prompt("waits", { key: KEY, delivery: inFlight === "a steer" ? "steer" : "queue" });
      await run.accepted;
      return { ...base, id: run.id, runId: run.id };
    }
    const run = session.prompt(inFlight, { key: KEY });
    const types = { "a call": "call.requested", "a question": "question.asked" } as const;
    const type = inFlight === "a call" || inFlight === "a question" ? types[inFlight] : "turn.requested";
    const id = await begun(session, run, type);
    return { ...base, id, runId: run.id };
  }

  /** Resolves when nothing of it goes on any more; fails if it has ended in any other way. */
  async stopped(target: Target, { mayBeRefused }: { readonly mayBeRefused: boolean }): Promise<void> {
    if (isUnanswered(target.inFlight)) return this.#settled(target.inFlight, "cancelled", mayBeRefused);
    const { id = "" } = target;
    try {
      for await (const event of this.belay.session(target.session).events()) {
        if (event.type === "run.settled" && event.runId === id) {
          // After a restart the turn is asked again, and takes the steer in before the stop can arrive.
          const isTaken = event.outcome.kind === "completed" && event.outcome.into !== undefined;
          return isTaken && target.inFlight === "a steer" ? undefined : is(event.outcome.kind, "cancelled");
        }
        if (event.type === "call.settled" && event.callId === id) return isOneOf(event.outcome.kind, ENDS_OF_CALLS);
        if (event.type === "question.settled" && event.questionId === id) return;
        if (event.type === "process.settled" && event.processId === id) return;
      }
    } catch (thrown) {
      if (!isGone(thrown)) throw thrown;
    }
  }

  /** The prompt behind the stop was accepted after the stop was recorded, or refused. */
  async recordedInOrder(target: Target): Promise<void> {
    const types: string[] = [];
    try {
      const session = this.belay.session(target.session);
      const { head } = await session.row();
      for await (const event of session.events()) {
        if (!("seq" in event)) continue;
        const isBehind = event.type === "run.accepted" && event.prompt.text === AFTER;
        types.push(isBehind ? AFTER : event.type);
        if (event.seq >= head) break;
      }
    } catch (thrown) {
      if (!isGone(thrown)) throw thrown;
    }
    const behind = types.indexOf(AFTER);
    const stopped = types.findIndex((type) => STOPS.test(type));
    if (behind === -1 || (stopped !== -1 && stopped < behind)) return;
    throw new Error(`The prompt behind the stop has overtaken it: ${types.join(", ")}`);
  }

  /** The prompt behind the stop is not covered. */
  afterwards(): Promise<void> {
    return this.#settled(AFTER, "completed");
  }

  async #ownRun(inFlight: InFlight, target: Target, prompt: Prompter | undefined): Promise<Target> {
    await prompt?.(target, inFlight);
    for (const { id } of await this.belay.sessions({ order: "newest" })) {
      const session = this.belay.session(id);
      const [row] = await session.runs();
      if (row === undefined) continue;
      await begun(session, row, "turn.requested");
      return { ...target, session: id, id: row.id, runId: row.id };
    }
    throw new Error("No session was begun.");
  }

  async #settled(text: string, kind: string, mayBeRefused = false): Promise<void> {
    for (const { id, head } of await this.belay.sessions({ order: "newest" })) {
      for await (const event of this.belay.session(id).events()) {
        if (event.type === "run.accepted" && event.prompt.text === text) {
          return is((await (await this.belay.run(event.runId)).outcome).kind, kind);
        }
        if (!("seq" in event) || event.seq >= head) break;
      }
    }
    if (!mayBeRefused) throw new Error(`No prompt "${text}" was accepted.`);
  }

  async #open(): Promise<void> {
    this.belay = await openBelay({
      ...{ store: this.#store, agent, graceMs: 20, directories: "any", liveRunsMax: 10 },
      processes: {
        spawner: scriptedSpawner({
          clock: systemClock,
          script: ({ command }) => (command === "starts" ? { startsAfter: new Gate() } : {}),
        }),
      },
    });
  }
}

/** The first record of a stop, whatever it is of. Nothing here ends by itself. */
const STOPS = /^(session\.closed|\w+\.cancel_requested|(run|question|call|process)\.settled)$/;

/** A call that was cut off by a restart has ended as `lost`. */
const ENDS_OF_CALLS: readonly string[] = ["cancelled", "lost"];

async function process(session: Session, inFlight: InFlight): Promise<string> {
  if (inFlight === "a process") return (await session.processes.start("work")).id;
  // Rejects when it is stopped.
  session.processes.start("starts").catch(() => {});
  for await (const event of session.events()) if (event.type === "process.requested") return event.processId;
  throw new Error("No process was requested.");
}

async function begun(session: Session, run: Pick<RunControl, "id">, type: string): Promise<string> {
  for await (const event of session.events()) {
    if (event.type !== type || !("runId" in event) || event.runId !== run.id) continue;
    if (event.type === "call.requested") return event.callId;
    return event.type === "question.asked" ? event.questionId : run.id;
  }
  throw new Error(`There was no ${type}.`);
}

const is = (found: string, expected: string): void => isOneOf(found, [expected]);

function isOneOf(found: string, expected: readonly string[]): void {
  if (!expected.includes(found)) throw new Error(`It ended as ${found}, not as ${expected.join(" or ")}.`);
}

/** The session was deleted with everything in it. */
const isGone = (thrown: unknown): boolean => thrown instanceof ControlError && thrown.code === "not_found";
