// The turn as its agent receives it. Getters, so that it can be destructured: `async ({ prompt, emit, signal }) => …`.

import { checkNote, invalid } from "../../core/input.ts";
import { SUMMARY_CHARS_MAX } from "../../core/limits.ts";
import type { RunId, SessionId, TurnId } from "../../core/model/ids.ts";
import type { JsonInput, Prompt } from "../../core/model/prompt.ts";
import type { Run } from "../../core/model/run.ts";
import type { CallOptions, CallResult, Execute, RunUsage, Turn } from "../../ports/agent.ts";
import type { Clock } from "../../ports/clock.ts";
import type { RunWork } from "./run-work.ts";

/** The live turn behind the facade. */
type Behind = RunWork &
  Pick<Turn, "emit" | "cancel" | "takeSteers" | "meter" | "processes" | "transcript" | "compact" | "stop"> & {
    readonly id: TurnId;
    readonly run: Run;
    call(name: string, input: JsonInput, execute: Execute, options?: CallOptions): Promise<CallResult>;
  };

export class TurnFacade implements Turn {
  readonly #turn: Behind;

  constructor(turn: Behind) {
    this.#turn = turn;
  }

  get sessionId(): SessionId {
    return this.#turn.sessionId;
  }

  get runId(): RunId {
    return this.#turn.run.id;
  }

  get turnId(): TurnId {
    return this.#turn.id;
  }

  get cwd(): string | undefined {
    return this.#turn.lane.decided.cwd;
  }

  get mode(): string | undefined {
    return this.#turn.mode;
  }

  get prompt(): Prompt {
    return this.#turn.run.prompt;
  }

  get attempt(): number {
    return this.#turn.run.attempt;
  }

  get spent(): RunUsage {
    const { spent, turns } = this.#turn.run;
    return { ...spent, turns: turns - 1 };
  }

  get clock(): Clock {
    return this.#turn.host.clock;
  }

  get signal(): AbortSignal {
    return this.#turn.scope.signal;
  }

  get graceMs(): number {
    return this.#turn.host.graceMs;
  }

  get processes(): Turn["processes"] {
    return this.#turn.processes;
  }

  get transcript(): Turn["transcript"] {
    return () => this.#turn.gate.settle(() => this.#turn.transcript());
  }

  get emit(): Turn["emit"] {
    return (text, kind) => this.#turn.emit(text, kind);
  }

  get meter(): Turn["meter"] {
    return (read) => this.#turn.meter(read);
  }

  get call(): Turn["call"] {
    // The function's return value is checked at run time; its type is the one that the caller declares.
    return (name, input, execute, options) =>
      this.#turn.call(name, input, execute as Execute, options) as Promise<CallResult<never>>;
  }

  get cancel(): Turn["cancel"] {
    return (callId, options) => this.#turn.gate.settle(() => this.#turn.cancel(callId, options));
  }

  get takeSteers(): Turn["takeSteers"] {
    return () => this.#turn.gate.settle(() => this.#turn.takeSteers());
  }

  get ask(): Turn["ask"] {
    return (question) => this.#turn.ask(question);
  }

  get compact(): Turn["compact"] {
    return (summary) =>
      this.#turn.gate.settle(() => {
        if (typeof summary !== "string" || summary.trim() === "") throw invalid("compact() takes a summary.");
        return this.#turn.compact(summary.slice(0, SUMMARY_CHARS_MAX).toWellFormed());
      });
  }

  get stop(): Turn["stop"] {
    return (note) => this.#turn.gate.settle(() => this.#turn.stop(checkNote(note)));
  }
}
