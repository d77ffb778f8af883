// One tool call, driven by the test.
import type { Json } from "../core/model/prompt.ts";
import type { CallResult, Execute, LiveCall } from "../ports/agent.ts";
import { Gate } from "./gate.ts";

export class ScriptedCall {
  readonly name: string;
  readonly input: Json;
  /** What the turn receives, once it is durable. Rejects if the run accepts no new calls. */
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

  /** Resolves with the live call when the tool starts. A call that is cancelled before never starts. */
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

  /** Called by the agent when the engine starts the call. */
  begin(live: LiveCall, execute: Execute | undefined): ReturnType<Execute> {
    this.#begun.open(live);
    return execute === undefined ? this.#ended : execute(live);
  }
}
