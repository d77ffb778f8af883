// What a turn asks of the engine, besides what its calls do.
import type { Outcome } from "../core/cancel.ts";
import { ControlError } from "../core/control-error.ts";
import type { TurnEnd } from "../core/decide-run.ts";
import type { Usage } from "../core/event.ts";
import type { TurnId } from "../core/ids.ts";
import type { Json, Prompt } from "../core/prompt.ts";
import type { Run } from "../core/run.ts";
import type { Message } from "../core/transcript.ts";
import type { Agent, CallOptions, CallRequest, CallResult } from "../ports.ts";
import { Desk, type DeskParts } from "./desk.ts";
import type { LiveCall } from "./live-call.ts";
import type { LiveLane } from "./live-lane.ts";
import { LiveTranscript } from "./live-transcript.ts";
import type { LiveTurn, Said, TurnDesk as TurnNeeds } from "./live-turn.ts";
import { type Replay, readReplay } from "./replay.ts";
import type { Ended } from "./scope.ts";
import { TurnProcesses } from "./turn-processes.ts";
import { askOf } from "./turn-result.ts";

export class TurnDesk extends Desk implements TurnNeeds {
  readonly #turnId: TurnId;
  #replay: Promise<Replay> | undefined = undefined;

  constructor(parts: DeskParts, lane: LiveLane, begun: Run, turnId: TurnId) {
    super(parts, lane, begun);
    this.#turnId = turnId;
  }

  get agent(): Agent {
    return this.parts.agent;
  }

  get graceMs(): number {
    return this.parts.graceMs;
  }

  turnProcesses(turn: Parameters<TurnNeeds["turnProcesses"]>[0]): TurnProcesses {
    return new TurnProcesses(this.parts.handles, this.lane, turn);
  }

  run(): Run | undefined {
    const live = this.lane.decided.live;
    return live?.id === this.begun.id ? live : undefined;
  }

  extend(text: string, usage: Usage | undefined): Promise<unknown> {
    const cost = usage === undefined ? {} : { usage };
    return this.commit.submit(this.lane, { type: "extend", turnId: this.#turnId, text, ...cost });
  }

  async take(): Promise<readonly Prompt[]> {
    const taken = await this.commit.submit(this.lane, { type: "take", turnId: this.#turnId });
    return taken.map((steer) => steer.prompt);
  }

  compact(summary: string): Promise<void> {
    return this.commit.submit(this.lane, { type: "compact", turnId: this.#turnId, summary });
  }

  async stop(note: string): Promise<void> {
    const reason = { kind: "policy", note } as const;
    // @fault own-stop-not-recorded
    await this.commit.submit(this.lane, { type: "cancel-run", runId: this.begun.id, reason });
  }

  delta({ text, from, kind }: Said): void {
    if (this.isGone) return;
    const { id: runId } = this.begun;
    const delta = { type: "delta", runId, turnId: this.#turnId, text, from } as const;
    const { id, durable } = this.lane;
    this.parts.feeds.delta(id, kind === "text" ? delta : { ...delta, kind }, durable.head);
  }

  async transcript(): Promise<readonly Message[]> {
    this.lane.transcript ??= new LiveTranscript();
    const messages = await this.lane.transcript.read(this.parts.store, this.lane, this.begun);
    // The turn that asks is not part of what it may read, unless it has made calls: those have results already.
    const isOwn = (message: Message): boolean => message.role === "assistant" && message.turnId === this.#turnId;
    const calls = messages.some(
      (message) => isOwn(message) && message.role === "assistant" && message.calls.length > 0,
    );
    return calls ? messages : messages.filter((message) => !isOwn(message));
  }

  async recorded(name: string, input: Json, options: CallOptions): Promise<CallResult | undefined> {
    if (this.lane.whole === this.begun.id) return undefined;
    this.#replay ??= readReplay(this.parts.store, this.lane.id, this.#turnId, this.begun.acceptedAt);
    return (await this.#replay).take(name, input, options);
  }

  call(live: LiveCall, request: CallRequest): void {
    this.lane.works.push(live.work);
    this.commit.submit(this.lane, { type: "call", ...askOf(live.callId, request) }).then(
      (answer) => {
        if (answer.kind === "refused") this.#refuse(live, new ControlError(answer.code, answer.message));
      },
      (error: unknown) => this.#refuse(live, error),
    );
  }

  turnEnded(turn: LiveTurn, ended: Ended<unknown>): void {
    if (!this.drive.ended(this.lane, turn.work)) {
      this.late(turn.work, ended.kind);
      return;
    }
    const setDown = this.setsDown && ended.kind === "cancelled" && ended.reason.kind === "shutdown";
    if (setDown) {
      void turn.keep();
      return;
    }
    const { end, calls } = turn.finish(ended);
    // Before they are asked for: what the state demands must be found here.
    // @fault end-calls-begun-before-durable, end-calls-forgotten
    for (const call of calls) this.lane.works.push(call.work);
    if (this.setsDown) for (const call of calls) this.drive.stop(this.lane, call.work, { kind: "shutdown" });
    void this.#settleTurn(turn, end, calls);
  }

  turnGivenUp(turn: LiveTurn, outcome: Outcome): void {
    if (!this.setsDown) void this.#settleTurn(turn, turn.settled(outcome), []);
  }

  async #settleTurn(turn: LiveTurn, end: TurnEnd, calls: readonly LiveCall[]): Promise<void> {
    this.lane.whole = this.begun.id;
    try {
      await this.commit.submit(this.lane, { type: "settle-turn", end });
    } catch {
      // Refused only by a lane that another worker has taken over, and then it is theirs to say how the turn ended.
    }
    this.drive.forget(this.lane, turn.work);
    // What was not asked for, because the run was being stopped, never comes into being.
    const live = this.run()?.live ?? [];
    for (const { callId, work } of calls) {
      if (work.phase === "waiting" && !live.some((call) => call.id === callId)) this.drive.forget(this.lane, work);
    }
  }

  #refuse(live: LiveCall, error: unknown): void {
    this.drive.forget(this.lane, live.work);
    live.refuse(error);
  }
}
