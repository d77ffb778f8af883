// What a busy house appends: batches of facts as the real policy decides them, for several sessions.
import { type Chooser, chance, pick, weighted } from "../../sim/chooser.ts";
import type { CancelReason } from "../../src/core/model/cancel.ts";
import type { Command } from "../../src/core/model/command.ts";
import type { Event } from "../../src/core/model/event.ts";
import { callId, type RunId, type SessionId } from "../../src/core/model/ids.ts";
import { evolve, type Lane } from "../../src/core/model/lane.ts";
import { decide } from "../../src/core/policy/decide.ts";
import type { Batch } from "../../src/ports/store.ts";

/** A batch, and the lane as it stands after it. */
export interface Step {
  readonly batch: Batch;
  readonly lane: Lane;
}

const SESSIONS = ["ses_a", "ses_b", "ses_c", "ses_house.d"] as const;
const USER: CancelReason = { kind: "user", note: "enough" };
const COMMANDS_MAX = 3;
const SNAPSHOT_PERCENT = 15;

export class Workload {
  readonly #chooser: Chooser;
  #runs = 0;
  #at = 1_700_000_000_000;

  constructor(chooser: Chooser) {
    this.#chooser = chooser;
  }

  /** A session to go on with. */
  session(): SessionId {
    return pick(this.#chooser, SESSIONS);
  }

  /** What is appended next to this lane. Undefined: this time nothing follows. */
  next(lane: Lane): Step | undefined {
    const events: Event[] = [];
    let after = lane;
    for (let count = 1 + this.#chooser.below(COMMANDS_MAX); count > 0; count -= 1) {
      const decided = decide(after, this.#command(after));
      events.push(...decided.events);
      after = decided.events.reduce(evolve, after);
    }
    return events.length === 0 ? undefined : this.#step(lane, after, events);
  }

  /** What the next worker appends first to a lane that it finds. */
  recovery(lane: Lane): Step | undefined {
    const { events } = decide(lane, { type: "recover", resume: "resume" });
    return events.length === 0 ? undefined : this.#step(lane, events.reduce(evolve, lane), events);
  }

  #step(before: Lane, after: Lane, events: readonly Event[]): Step {
    this.#at += 1;
    const batch = { session: before.id, expected: before.head, events, at: this.#at };
    const snapshot = chance(this.#chooser, SNAPSHOT_PERCENT) ? { snapshot: after } : {};
    return { batch: { ...batch, ...snapshot }, lane: after };
  }

  #command(lane: Lane): Command {
    const { live } = lane;
    if (lane.phase === "absent") return { type: "create", ...(chance(this.#chooser, 50) ? { title: "One" } : {}) };
    if (live === undefined) return lane.queue.length > 0 ? { type: "start" } : this.#accept();
    const call = live.live[0];
    const process = lane.processes.live[0];
    const ended = { kind: "completed" } as const;
    return weighted<() => Command>(this.#chooser, [
      [3, () => this.#accept()],
      [1, () => ({ type: "cancel-run", runId: live.id, reason: USER })],
      [1, () => ({ type: "cancel-session", reason: USER })],
      [1, () => ({ type: "set-mode", mode: pick(this.#chooser, ["ask", "auto"]) })],
      [3, () => this.#ofTurn(lane)],
      [3, () => this.#ofTurn(lane)],
      [2, () => this.#begin(lane)],
      [4, () => (call === undefined ? this.#ofTurn(lane) : { type: "settle-call", end: this.#callEnd(call.id) })],
      [
        2,
        () =>
          process === undefined
            ? this.#begin(lane)
            : { type: "settle-process", end: { processId: process.id, exit: { code: 0 } } },
      ],
      [
        3,
        () =>
          live.turn === undefined
            ? this.#accept()
            : {
                type: "settle-turn",
                end: {
                  turnId: live.turn,
                  outcome: live.phase === "stopping" ? { kind: "cancelled", reason: live.reason } : ended,
                  next: live.phase === "running" && chance(this.#chooser, 30) ? "turn" : "end",
                  text: this.#text(),
                },
              },
      ],
    ])();
  }

  #callEnd(id: ReturnType<typeof callId>) {
    return { callId: id, outcome: { kind: "completed" } as const, result: { said: this.#text() } };
  }

  #ofTurn({ live }: Lane): Command {
    if (live?.turn === undefined || live.phase !== "running") return this.#accept();
    if (chance(this.#chooser, 60)) return { type: "extend", turnId: live.turn, text: this.#text() };
    return { type: "call", callId: callId(live.id, live.calls + 1), name: "look", input: { for: this.#text() } };
  }

  #begin({ id }: Lane): Command {
    return { type: "begin-process", owner: id, command: ["sleep", "infinity"], feedback: "silent" };
  }

  #accept(): Command {
    this.#runs += 1;
    const runId: RunId = `run_${this.#runs}`;
    const keyed = chance(this.#chooser, 30) ? { key: `key-${this.#runs}`, content: `digest-${this.#runs}` } : {};
    return { type: "accept", runId, prompt: { text: this.#text() }, delivery: "queue", ...keyed };
  }

  /** Mostly a sentence; now and then more than a page of the file, so that a row is spread over several. */
  #text(): string {
    const letter = pick(this.#chooser, ["a", "é", "漢", "0"]);
    return letter.repeat(chance(this.#chooser, 8) ? 1_000 + this.#chooser.below(9_000) : this.#chooser.below(200));
  }
}
