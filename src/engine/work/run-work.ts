// A turn or call of the live run, with the engine parts that both use. Their ends are recorded as commands.
import type { Outcome } from "../../core/model/cancel.ts";
import { type ProcessId, type RunId, runOf, type SessionId, type Work } from "../../core/model/ids.ts";
import type { QuestionOutcome, Subject } from "../../core/model/question.ts";
import type { Agent, QuestionRequest, QuestionResult } from "../../ports/agent.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Notify } from "../../ports/hooks.ts";
import type { ProcessResult } from "../../ports/spawner.ts";
import type { Store } from "../../ports/store.ts";
import type { Commit } from "../log/commit.ts";
import type { Feeds } from "../log/feed.ts";
import type { SessionState } from "../log/session-state.ts";
import { modeInForce } from "../modes.ts";
import type { ProcessHost } from "../process/process-handle.ts";
import { type LoopBudget, YieldGate } from "../yield-gate.ts";
import type { Driver } from "./driver.ts";
import type { HookRunner } from "./hooks.ts";
import { LiveWork } from "./live-work.ts";
import type { Questions } from "./questions.ts";
import { askedOf, checkAsk } from "./validate-question.ts";

/** The parts of the engine that turns and calls use. */
export interface WorkHost {
  readonly agent: Agent;
  readonly store: Store;
  readonly clock: Clock;
  readonly budget: LoopBudget;
  readonly notify: Notify;
  /** How long work may take to stop before it is abandoned. */
  readonly graceMs: number;
  readonly feeds: Feeds;
  readonly hooks: Pick<HookRunner, "beforeCalls" | "before">;
  readonly questions: Pick<Questions, "ask">;
  readonly handles: ProcessHost;
  readonly commit: Commit;
  readonly drive: Driver;
  /** While a worker parks its runs, work that it stops has not ended: it is parked. */
  readonly phase: "open" | "closing" | "parking" | "closed";
  digest(text: string): string;
}

export abstract class RunWork extends LiveWork {
  readonly host: WorkHost;
  readonly lane: SessionState;
  /** The agent or tool has returned. */
  hasReturned = false;
  /** It waited for something that a shutdown has ended: what it returns then is not a result. */
  protected isCutOff = false;
  /** Processes whose results it has received: no later turn receives them. */
  protected heard: ProcessId[] | undefined = undefined;
  liveAt = -1;
  namedAt = 0;
  #gate: YieldGate | undefined = undefined;

  constructor(host: WorkHost, lane: SessionState, id: Work, name: string) {
    super(id, name);
    this.host = host;
    this.lane = lane;
  }

  /** Ends its waits for processes. Waits of a turn may outlive it, like the process. */
  abstract readonly waitSignal: AbortSignal | undefined;

  get sessionId(): SessionId {
    return this.lane.id;
  }

  get runId(): RunId {
    return runOf(this.id);
  }

  /** The durable mode: a change that could still be refused has no effect. */
  get mode(): string | undefined {
    return modeInForce(this.host.agent, this.lane.durable.mode);
  }

  /** Created when its code first awaits something: most tools never do. */
  get gate(): YieldGate {
    this.#gate ??= new YieldGate(this.host.budget, this);
    return this.#gate;
  }

  ask(given: QuestionRequest): Promise<QuestionResult> {
    return this.gate.settle(() => {
      const { about, deadlineMs } = checkAsk(given);
      return this.inquire(about, deadlineMs).then(askedOf);
    });
  }

  inquire(about: Subject, deadlineMs: number | undefined): Promise<QuestionOutcome> {
    const ending = this.host.questions.ask(this.lane, this.scope, { owner: this.id, about, deadlineMs });
    return ending.catch((error: unknown) => {
      if (this.scope.reason?.kind === "shutdown") this.isCutOff = true;
      throw error;
    });
  }

  /** Its code has received the result of a process. */
  noteResult({ processId: id, outcome }: ProcessResult): void {
    if (outcome.kind === "cancelled" && outcome.reason.kind === "shutdown") this.isCutOff = true;
    // It cannot use what it receives after it has returned.
    if (this.hasReturned) return; // @fault heard-after-the-return
    this.heard ??= [];
    if (!this.heard.includes(id)) this.heard.push(id);
  }

  /** A run that is being stopped is not parked with the others; it ends. */
  protected get parks(): boolean {
    // @fault cancelled-while-parked:set-down
    return this.host.phase === "parking" && this.lane.decided.live?.phase === "running";
  }

  /** Lost to another worker, or unloaded: work that still runs here has no effect. */
  protected get isGone(): boolean {
    return this.lane.phase === "gone";
  }

  /** It ended after it had been abandoned. */
  protected noteLate(outcome: Outcome["kind"]): void {
    if (this.isGone) return;
    this.host.notify({ type: "late", runId: this.runId, work: this.name, outcome }); // @fault late-result-unnoticed
  }
}
