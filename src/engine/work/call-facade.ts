// The call as its tool receives it. Getters, so that it can be destructured: `({ signal, input }) => …`.

import { checkCallJson } from "../../core/input.ts";
import type { CallId, RunId, SessionId } from "../../core/model/ids.ts";
import type { Json, JsonInput } from "../../core/model/prompt.ts";
import type { LiveCall as Facade } from "../../ports/agent.ts";
import type { Clock } from "../../ports/clock.ts";
import type { RunWork } from "./run-work.ts";

/** The live call behind the facade. */
type Behind = RunWork &
  Pick<Facade, "input" | "signal" | "processes" | "progress"> & {
    readonly id: CallId;
    approve: NonNullable<Facade["approve"]>;
    keepPartial(result: JsonInput): void;
    noteChange(what: string): void;
  };

export class CallFacade implements Facade {
  readonly #call: Behind;

  constructor(call: Behind) {
    this.#call = call;
  }

  get callId(): CallId {
    return this.#call.id;
  }

  get name(): string {
    return this.#call.name;
  }

  get input(): Json {
    return this.#call.input;
  }

  get sessionId(): SessionId {
    return this.#call.sessionId;
  }

  get cwd(): string | undefined {
    return this.#call.lane.decided.cwd;
  }

  get mode(): string | undefined {
    return this.#call.mode;
  }

  get runId(): RunId {
    return this.#call.runId;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get stopping(): boolean {
    return this.#call.scope.reason !== undefined;
  }

  get clock(): Clock {
    return this.#call.host.clock;
  }

  get partial(): Facade["partial"] {
    return (result) => this.#call.keepPartial(result);
  }

  get progress(): Facade["progress"] {
    return (data) => this.#call.progress(checkCallJson(data, `The progress of ${this.name}`));
  }

  get changed(): Facade["changed"] {
    return (what) => this.#call.noteChange(what);
  }

  get processes(): Facade["processes"] {
    return this.#call.processes;
  }

  get approve(): NonNullable<Facade["approve"]> {
    return (subject, approval) => this.#call.gate.settle(() => this.#call.approve(subject, approval));
  }

  get ask(): Facade["ask"] {
    return (question) => this.#call.ask(question);
  }
}
