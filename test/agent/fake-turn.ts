// A turn without an engine, for the tests of this folder: it keeps what the agent says, and can be stopped.
import type { CancelReason } from "../../src/core/cancel.ts";
import type { Prompt } from "../../src/core/prompt.ts";
import type { Message } from "../../src/core/transcript.ts";
import type { Clock, Spent, Turn, TurnResult } from "../../src/ports.ts";

export class FakeTurn implements Turn {
  readonly sessionId = "ses_1";
  readonly runId = "run_1";
  readonly turnId = "turn_1.1";
  readonly cwd = undefined;
  mode: string | undefined = undefined;
  readonly attempt = 1;
  readonly prompt: Prompt = { text: "hello" };
  readonly clock: Clock;
  readonly #controller = new AbortController();
  readonly signal = this.#controller.signal;
  readonly graceMs = 1_500;
  spent: Spent = { turns: 0, inputTokens: 0, outputTokens: 0, estimated: false };
  messages: Message[] = [{ role: "user", runId: "run_1", text: "hello" }];
  /** What people have sent, to be taken in by the next look. */
  steers: Prompt[] = [];
  readonly emitted: { readonly text: string; readonly kind: "text" | "reasoning" }[] = [];
  readonly stops: string[] = [];
  readonly summaries: string[] = [];
  read: () => Pick<TurnResult, "usage" | "parts"> = () => ({});
  /** Instead of the answers above, where a test wants to keep somebody waiting. */
  transcript: Turn["transcript"] = () => Promise.resolve([...this.messages]);

  constructor(clock: Clock) {
    this.clock = clock;
  }

  get text(): string {
    return this.emitted.map(({ text, kind }) => (kind === "text" ? text : "")).join("");
  }

  /** As the engine does it when the run is cancelled. */
  cancel(reason: CancelReason = { kind: "user" }): void {
    this.#controller.abort(Object.assign(new Error("Cancelled"), { name: "AbortError", reason }));
  }

  readonly emit: Turn["emit"] = (text, kind = "text") => void this.emitted.push({ text, kind });

  readonly meter: Turn["meter"] = (read) => {
    this.read = read;
  };

  takeSteers: Turn["takeSteers"] = () => {
    const taken = this.steers.splice(0);
    this.messages.push(...taken.map(({ text }): Message => ({ role: "user", runId: "run_2", text })));
    return Promise.resolve(taken);
  };

  compact: Turn["compact"] = (text) => {
    this.summaries.push(text);
    this.messages.push({ role: "summary", runId: "run_1", text, request: this.prompt.text });
    return Promise.resolve();
  };

  stop: Turn["stop"] = (note) => {
    this.stops.push(note);
    this.cancel({ kind: "policy", note });
    return Promise.resolve();
  };

  get processes(): never {
    throw new Error("The agent over a model starts nothing itself.");
  }

  call(): never {
    throw new Error("The agent over a model asks for calls at the end of its turns.");
  }

  ask(): never {
    throw new Error("The agent over a model asks nobody.");
  }
}
