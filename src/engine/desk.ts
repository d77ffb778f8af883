// What a call asks of the engine. Whatever happens to it in the world comes back through here, as a command.
import type { Outcome } from "../core/cancel.ts";
import type { CallEnd } from "../core/decide-run.ts";
import type { CallId, SessionId, Work } from "../core/ids.ts";
import type { Lane } from "../core/lane.ts";
import type { Json } from "../core/prompt.ts";
import type { About, Ending } from "../core/question.ts";
import type { Run } from "../core/run.ts";
import type { Agent, Clock, Notify, Store } from "../ports.ts";
import { CallProcesses } from "./call-processes.ts";
import type { Commit } from "./commit.ts";
import type { Drive } from "./drive.ts";
import type { Feeds } from "./feed.ts";
import type { HookRunner } from "./hooks.ts";
import type { CallDesk } from "./live-call.ts";
import type { LiveLane } from "./live-lane.ts";
import type { LiveWork } from "./live-work.ts";
import { modeInForce } from "./modes.ts";
import type { HandleDesk } from "./process-handle.ts";
import type { Questions } from "./questions.ts";
import type { Scope } from "./scope.ts";

export interface DeskParts {
  readonly agent: Agent;
  readonly store: Store;
  readonly clock: Clock;
  readonly notify: Notify;
  /** How long work may take to stop before it is given up. */
  readonly graceMs: number;
  readonly feeds: Feeds;
  readonly hooks: HookRunner;
  readonly questions: Questions;
  readonly handles: HandleDesk;
  readonly digest: (text: string) => string;
  readonly commit: () => Commit;
  readonly drive: () => Drive;
  /** While a worker is parking its runs, work that was stopped for it has not ended: it is set down. */
  readonly parking: () => boolean;
}

export class Desk implements CallDesk {
  protected readonly parts: DeskParts;
  protected readonly lane: LiveLane;
  protected readonly begun: Run;

  constructor(parts: DeskParts, lane: LiveLane, begun: Run) {
    this.parts = parts;
    this.lane = lane;
    this.begun = begun;
  }

  get clock(): Clock {
    return this.parts.clock;
  }

  get hooks(): HookRunner {
    return this.parts.hooks;
  }

  get sessionId(): SessionId {
    return this.lane.id;
  }

  get cwd(): string | undefined {
    return this.lane.decided.cwd;
  }

  /** As it is recorded: a change that could still be refused frees nothing. */
  get mode(): string | undefined {
    return modeInForce(this.parts.agent, this.lane.durable.mode);
  }

  digest(text: string): string {
    return this.parts.digest(text);
  }

  progress(callId: CallId, data: Json): void {
    if (this.isGone) return;
    const progress = { type: "progress", runId: this.begun.id, callId, data } as const;
    this.parts.feeds.delta(this.lane.id, progress, this.lane.durable.head);
  }

  inquire(scope: Scope, owner: Work, about: About, deadlineMs: number | undefined): Promise<Ending> {
    return this.parts.questions.ask(this.lane, scope, { owner, about, deadlineMs });
  }

  /** Some stops can still be refused, and stop nothing before they are durable; but nothing begins meanwhile. */
  unsure(callId: CallId): boolean {
    const { decided, durable, health } = this.lane;
    const stops = ({ live: run }: Lane): boolean =>
      run?.phase === "stopping" || run?.live.find((call) => call.id === callId)?.phase === "stopping";
    return health.kind === "unknown" || (stops(decided) && !stops(durable));
  }

  /** Rejects if it will never be known here. */
  async known(): Promise<void> {
    await this.commit.drained(this.lane);
    if (this.isGone) throw new Error(`Session ${this.lane.id} is not driven from here any more.`);
  }

  processesOf(call: Parameters<CallDesk["processesOf"]>[0]): CallProcesses {
    return new CallProcesses(this.parts.handles, this.lane, call);
  }

  ownsProcesses(callId: CallId): boolean {
    return this.parts.handles.processes.owns(this.lane, callId);
  }

  endProcesses(callId: CallId): Promise<void> {
    return this.parts.handles.processes.endOf(this.lane, callId);
  }

  abandonProcesses(callId: CallId): void {
    this.parts.handles.processes.abandon(this.lane, callId);
  }

  limitReached(callId: CallId, limitMs: number): void {
    const reason = { kind: "timeout", limitMs } as const;
    // Refused only by a store in trouble, which keeps the cancel, or by a lane that is not ours any more.
    this.commit.submit(this.lane, { type: "cancel-call", callId, reason }).catch(() => {});
  }

  ended(work: LiveWork, end: CallEnd): Promise<unknown> | undefined {
    if (!this.drive.ended(this.lane, work)) {
      this.late(work, end.outcome.kind);
      return undefined;
    }
    if (this.setsDown && end.outcome.kind === "cancelled") return Promise.resolve();
    return this.#settleCall(work, end);
  }

  async gaveUp(work: LiveWork, end: CallEnd): Promise<unknown> {
    if (this.setsDown) return;
    return this.#settleCall(work, end);
  }

  /** A run that is being stopped is not set down with the others; it ends. */
  protected get setsDown(): boolean {
    // @fault cancelled-while-parked:set-down
    return this.parts.parking() && this.lane.decided.live?.phase === "running";
  }

  /** Lost to another worker, or let go: what still goes on here counts for nobody. */
  protected get isGone(): boolean {
    return this.lane.phase === "gone";
  }

  protected late(work: LiveWork, outcome: Outcome["kind"]): void {
    if (this.isGone) return;
    this.parts.notify({ type: "late", runId: this.begun.id, work: work.name, outcome }); // @fault late-result-unnoticed
  }

  protected get commit(): Commit {
    return this.parts.commit();
  }

  protected get drive(): Drive {
    return this.parts.drive();
  }

  async #settleCall(work: LiveWork, end: CallEnd): Promise<void> {
    try {
      await this.commit.submit(this.lane, { type: "settle-call", end });
    } finally {
      this.drive.forget(this.lane, work);
    }
  }
}
