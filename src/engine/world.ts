// Turns and calls, made live: the agent is called, tools are run, and their ends come back as commands.
import type { Outcome } from "../core/cancel.ts";
import { ControlError } from "../core/control-error.ts";
import type { CallEnd, TurnEnd } from "../core/decide-run.ts";
import type { SessionId, TurnId, Work } from "../core/ids.ts";
import type { Json, Prompt } from "../core/prompt.ts";
import type { Run } from "../core/run.ts";
import { type Message, transcript } from "../core/transcript.ts";
import type { Agent, CallOptions, CallResult, Clock, Notify, Store } from "../ports.ts";
import type { Commit } from "./commit.ts";
import type { Drive, World } from "./drive.ts";
import type { Delta, Feeds } from "./feed.ts";
import type { LiveCall } from "./live-call.ts";
import type { LiveLane } from "./live-lane.ts";
import { LiveTurn, type TurnDesk } from "./live-turn.ts";
import type { LiveWork } from "./live-work.ts";
import { type Replay, readAll, readReplay } from "./replay.ts";
import type { Ended } from "./scope.ts";

interface Parts {
  readonly agent: Agent;
  readonly store: Store;
  readonly clock: Clock;
  readonly notify: Notify;
  readonly feeds: Feeds;
  readonly commit: () => Commit;
  readonly drive: () => Drive;
  /** While a worker is parking its runs, work that was stopped for it has not ended: it is set down. */
  readonly parking: () => boolean;
  /** False once runs are being set down, and after that. */
  readonly begins: () => boolean;
}

export function makeWorld(parts: Parts): World {
  return {
    begins: parts.begins,
    handle(lane, id) {
      const known = lane.work(id);
      const run = lane.decided.live;
      if (known !== undefined || !isTurn(id) || run?.turn !== id) return known;
      const { work } = new LiveTurn(new Desk(parts, lane, run, id), run, id);
      lane.works.push(work);
      return work;
    },
    unbegun(lane, id) {
      if (isTurn(id)) return;
      // Refused only by a lane that another worker has taken over, and then it is theirs to say.
      parts
        .commit()
        .submit(lane, { type: "settle-call", end: { callId: id, outcome: UNBEGUN } })
        .catch(() => {});
    },
  };
}

const UNBEGUN: Outcome = {
  kind: "failed",
  code: "unavailable",
  message: "It was never begun: the store did not say in time that it was recorded.",
};

const isTurn = (id: Work): id is TurnId => id.startsWith("turn_");

/** What one turn and its calls ask of the engine. */
class Desk implements TurnDesk {
  readonly #parts: Parts;
  readonly #lane: LiveLane;
  readonly #run: Run;
  readonly #turnId: TurnId;
  #replay: Promise<Replay> | undefined = undefined;

  constructor(parts: Parts, lane: LiveLane, run: Run, turnId: TurnId) {
    this.#parts = parts;
    this.#lane = lane;
    this.#run = run;
    this.#turnId = turnId;
  }

  get clock(): Clock {
    return this.#parts.clock;
  }

  get agent(): Agent {
    return this.#parts.agent;
  }

  get sessionId(): SessionId {
    return this.#lane.id;
  }

  run(): Run | undefined {
    const live = this.#lane.decided.live;
    return live?.id === this.#run.id ? live : undefined;
  }

  extend(text: string): Promise<unknown> {
    return this.#commit.submit(this.#lane, { type: "extend", turnId: this.#turnId, text });
  }

  async take(): Promise<readonly Prompt[]> {
    const taken = await this.#commit.submit(this.#lane, { type: "take", turnId: this.#turnId });
    return taken.map((steer) => steer.prompt);
  }

  delta(text: string): void {
    const delta: Delta = { type: "delta", runId: this.#run.id, turnId: this.#turnId, text };
    this.#parts.feeds.delta(this.#lane.id, delta);
  }

  async transcript(): Promise<readonly Message[]> {
    const events = await Array.fromAsync(readAll(this.#parts.store, this.#lane.id, 0));
    // The turn that asks is not part of what it may read.
    return transcript(events).filter((message) => message.role !== "assistant" || message.turnId !== this.#turnId);
  }

  async recorded(name: string, input: Json, options: CallOptions): Promise<CallResult | undefined> {
    this.#replay ??= readReplay(this.#parts.store, this.#lane.id, this.#run.id, this.#run.acceptedAt);
    return (await this.#replay).take(name, input, options);
  }

  call(live: LiveCall): void {
    const { callId, name, input } = live;
    this.#lane.works.push(live.work);
    this.#commit.submit(this.#lane, { type: "call", callId, name, input }).then(
      (answer) => {
        if (answer.kind === "refused") this.#refuse(live, new ControlError(answer.code, answer.message));
      },
      (error: unknown) => this.#refuse(live, error),
    );
  }

  cancelCall({ callId }: LiveCall, limitMs: number): void {
    const reason = { kind: "timeout", limitMs } as const;
    // Refused only by a store in trouble, which keeps the cancel, or by a lane that is not ours any more.
    this.#commit.submit(this.#lane, { type: "cancel-call", callId, reason }).catch(() => {});
  }

  ended(work: LiveWork, end: CallEnd): Promise<unknown> | undefined {
    if (!this.#drive.ended(this.#lane, work)) {
      this.#late(work, end.outcome.kind);
      return undefined;
    }
    if (this.#setsDown && end.outcome.kind === "cancelled") return Promise.resolve();
    return this.#settleCall(work, end);
  }

  async gaveUp(work: LiveWork, end: CallEnd): Promise<unknown> {
    if (this.#setsDown) return;
    return this.#settleCall(work, end);
  }

  turnEnded(turn: LiveTurn, ended: Ended<unknown>): void {
    if (!this.#drive.ended(this.#lane, turn.work)) {
      this.#late(turn.work, ended.kind);
      return;
    }
    const setDown = this.#setsDown && ended.kind === "cancelled" && ended.reason.kind === "shutdown";
    if (setDown) void turn.keep();
    else void this.#settleTurn(turn, turn.end(ended));
  }

  turnGivenUp(turn: LiveTurn, outcome: Outcome): void {
    if (!this.#setsDown) void this.#settleTurn(turn, turn.settled(outcome));
  }

  /** A run that is being stopped is not set down with the others; it ends. */
  get #setsDown(): boolean {
    return this.#parts.parking() && this.#lane.decided.live?.phase === "running";
  }

  async #settleTurn(turn: LiveTurn, end: TurnEnd): Promise<void> {
    try {
      await this.#commit.submit(this.#lane, { type: "settle-turn", end });
    } catch {
      // Refused only by a lane that another worker has taken over, and then it is theirs to say how the turn ended.
    }
    this.#drive.forget(this.#lane, turn.work);
  }

  async #settleCall(work: LiveWork, end: CallEnd): Promise<void> {
    try {
      await this.#commit.submit(this.#lane, { type: "settle-call", end });
    } finally {
      this.#drive.forget(this.#lane, work);
    }
  }

  #refuse(live: LiveCall, error: unknown): void {
    this.#drive.forget(this.#lane, live.work);
    live.refuse(error);
  }

  #late(work: LiveWork, outcome: Outcome["kind"]): void {
    if (this.#lane.phase === "gone") return;
    this.#parts.notify({ type: "late", runId: this.#run.id, work: work.name, outcome });
  }

  get #commit(): Commit {
    return this.#parts.commit();
  }

  get #drive(): Drive {
    return this.#parts.drive();
  }
}
