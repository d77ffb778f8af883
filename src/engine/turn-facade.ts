// What the agent sees of a turn. Getters, so that it can be taken apart: `async ({ prompt, emit, signal }) => …`.
import type { RunId, SessionId, TurnId } from "../core/ids.ts";
import { SUMMARY_CHARS_MAX } from "../core/limits.ts";
import type { Prompt } from "../core/prompt.ts";
import type { About, Ending } from "../core/question.ts";
import type { Run } from "../core/run.ts";
import type { Clock, Spent, Turn } from "../ports.ts";
import type { Scope } from "./scope.ts";
import { askedOf, checkAsk, checkNote, invalid } from "./validate.ts";

/** The live turn behind the facade. */
export interface Behind extends Pick<Turn, "turnId" | "emit" | "call" | "takeSteers" | "meter" | "processes"> {
  readonly run: Pick<Run, "id" | "prompt" | "attempt" | "spent" | "turns">;
  readonly work: { readonly scope: Scope };
  readonly desk: Pick<Turn, "sessionId" | "cwd" | "mode" | "clock" | "graceMs" | "transcript" | "compact" | "stop"> & {
    inquire(scope: Scope, owner: TurnId, about: About, deadlineMs: number | undefined): Promise<Ending>;
  };
}

export class TurnFacade implements Turn {
  readonly #turn: Behind;

  constructor(turn: Behind) {
    this.#turn = turn;
  }

  get sessionId(): SessionId {
    return this.#turn.desk.sessionId;
  }

  get runId(): RunId {
    return this.#turn.run.id;
  }

  get turnId(): TurnId {
    return this.#turn.turnId;
  }

  get cwd(): string | undefined {
    return this.#turn.desk.cwd;
  }

  get mode(): string | undefined {
    return this.#turn.desk.mode;
  }

  get prompt(): Prompt {
    return this.#turn.run.prompt;
  }

  get attempt(): number {
    return this.#turn.run.attempt;
  }

  get spent(): Spent {
    const { spent, turns } = this.#turn.run;
    return { ...spent, turns: turns - 1 };
  }

  get clock(): Clock {
    return this.#turn.desk.clock;
  }

  get signal(): AbortSignal {
    return this.#turn.work.scope.signal;
  }

  get graceMs(): number {
    return this.#turn.desk.graceMs;
  }

  get processes(): Turn["processes"] {
    return this.#turn.processes;
  }

  get transcript(): Turn["transcript"] {
    return () => quiet(this.#turn.desk.transcript());
  }

  get emit(): Turn["emit"] {
    return (text, kind) => this.#turn.emit(text, kind);
  }

  get meter(): Turn["meter"] {
    return (read) => this.#turn.meter(read);
  }

  get call(): Turn["call"] {
    return (name, input, execute, options) => quiet(this.#turn.call(name, input, execute, options));
  }

  get takeSteers(): Turn["takeSteers"] {
    return () => quiet(this.#turn.takeSteers());
  }

  get ask(): Turn["ask"] {
    const { turnId, desk, work } = this.#turn;
    return (question) => {
      const { about, deadlineMs } = checkAsk(question);
      return quiet(desk.inquire(work.scope, turnId, about, deadlineMs).then(askedOf));
    };
  }

  get compact(): Turn["compact"] {
    return (summary) => {
      if (typeof summary !== "string" || summary.trim() === "") throw invalid("compact() takes a summary.");
      return quiet(this.#turn.desk.compact(summary.slice(0, SUMMARY_CHARS_MAX).toWellFormed()));
    };
  }

  get stop(): Turn["stop"] {
    return (note) => quiet(this.#turn.desk.stop(checkNote(note)));
  }
}

/** Whoever does not wait for an answer must not be taken down by its rejection; whoever does still sees it. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
