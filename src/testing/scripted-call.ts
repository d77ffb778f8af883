// One tool call in the hands of the test.
import type { Json } from "../core/model/prompt.ts";
import type { CallResult, Execute, LiveCall } from "../ports/agent.ts";
import { Gate } from "./gate.ts";

export class ScriptedCall {
  readonly name: string;
  readonly input: Json;
  /** What the turn is told, once it is durable. Rejects if the run takes no new calls. */
  result!: Promise<CallResult>;
  readonly #begun = new Gate<LiveCall>();
  readonly #ended: Promise<Json | undefined>;
  #complete!: (value: Json | undefined) => void;
  #fail!: (error: unknown) => void;

  constructor(name: string, input: Json) {
    this.name = name;
    this.input = input;
    this.#ended = new Promise((resolve, reject) => {
      this.#complete = resolve;
      this.#fail = reject;
    });
    this.#ended.catch(() => undefined);
  }

  /** Resolves when the tool begins, with what it was given. A call that is cancelled before never begins. */
  get begun(): Promise<LiveCall> {
    return this.#begun.opened;
  }

  get hasBegun(): boolean {
    return this.#begun.isOpen;
  }

  complete(value?: Json): void {
    this.#complete(value);
  }

  fail(error: unknown = new Error("The tool failed.")): void {
    this.#fail(error);
  }

  /** Said by the agent's side when the engine begins the call. */
  begin(live: LiveCall, execute: Execute | undefined): ReturnType<Execute> {
    this.#begun.open(live);
    return execute === undefined ? this.#ended : execute(live);
  }
}
