// What a tool sees of its call. Getters, so that it can be taken apart: `({ signal, input }) => …`.
import type { CallId, RunId, SessionId } from "../core/ids.ts";
import type { Json } from "../core/prompt.ts";
import type { About, Ending } from "../core/question.ts";
import type { Clock, LiveCall as Facade } from "../ports.ts";
import type { Scope } from "./scope.ts";
import { askedOf, checkAsk, checkCallJson } from "./validate.ts";

/** The live call behind the facade. */
interface Behind extends Pick<Facade, "callId" | "name" | "input" | "runId" | "signal"> {
  readonly work: { readonly scope: Scope };
  readonly desk: Pick<Facade, "sessionId" | "cwd" | "mode" | "clock"> & {
    progress(callId: CallId, data: Json): void;
    inquire(scope: Scope, owner: CallId, about: About, deadlineMs: number | undefined): Promise<Ending>;
  };
  keepPartial(result: Json): void;
  noteChange(what: string): void;
  readonly processes: Facade["processes"];
}

export class CallFacade implements Facade {
  readonly #call: Behind;

  constructor(call: Behind) {
    this.#call = call;
  }

  get callId(): CallId {
    return this.#call.callId;
  }

  get name(): string {
    return this.#call.name;
  }

  get input(): Json {
    return this.#call.input;
  }

  get sessionId(): SessionId {
    return this.#call.desk.sessionId;
  }

  get cwd(): string | undefined {
    return this.#call.desk.cwd;
  }

  get mode(): string | undefined {
    return this.#call.desk.mode;
  }

  get runId(): RunId {
    return this.#call.runId;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }

  get stopping(): boolean {
    return this.#call.work.scope.reason !== undefined;
  }

  get clock(): Clock {
    return this.#call.desk.clock;
  }

  get partial(): Facade["partial"] {
    return (result) => this.#call.keepPartial(result);
  }

  get progress(): Facade["progress"] {
    const { callId, name, desk } = this.#call;
    return (data) => desk.progress(callId, checkCallJson(data, `The progress of ${name}`));
  }

  get changed(): Facade["changed"] {
    return (what) => this.#call.noteChange(what);
  }

  get processes(): Facade["processes"] {
    return this.#call.processes;
  }

  get ask(): Facade["ask"] {
    const { callId, desk, work } = this.#call;
    return async (question) => {
      const { about, deadlineMs } = checkAsk(question);
      return askedOf(await desk.inquire(work.scope, callId, about, deadlineMs));
    };
  }
}
