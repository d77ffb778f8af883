// What the agent sees of a turn. Getters, so that it can be taken apart: `async ({ prompt, emit, signal }) => …`.
import type { RunId, SessionId, TurnId } from "../core/ids.ts";
import type { Prompt } from "../core/prompt.ts";
import type { Run } from "../core/run.ts";
import type { Turn } from "../ports.ts";

/** The live turn behind the facade. */
export interface Behind extends Pick<Turn, "turnId" | "emit" | "call" | "takeSteers"> {
  readonly run: Pick<Run, "id" | "prompt" | "attempt">;
  readonly work: { readonly scope: { readonly signal: AbortSignal } };
  readonly desk: {
    readonly sessionId: SessionId;
    transcript(): ReturnType<Turn["transcript"]>;
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

  get prompt(): Prompt {
    return this.#turn.run.prompt;
  }

  get attempt(): number {
    return this.#turn.run.attempt;
  }

  get signal(): AbortSignal {
    return this.#turn.work.scope.signal;
  }

  get transcript(): Turn["transcript"] {
    return () => quiet(this.#turn.desk.transcript());
  }

  get emit(): Turn["emit"] {
    return (text) => this.#turn.emit(text);
  }

  get call(): Turn["call"] {
    return (name, input, execute, options) => quiet(this.#turn.call(name, input, execute, options));
  }

  get takeSteers(): Turn["takeSteers"] {
    return () => quiet(this.#turn.takeSteers());
  }
}

/** Whoever does not wait for an answer must not be taken down by its rejection; whoever does still sees it. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
