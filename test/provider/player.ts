// Plays one script on one connection, in one provider's format.
import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import type { Format, Rendering } from "./format.ts";
import type { Gates } from "./gates.ts";
import { argumentPieces, type CallStep, type End, isEnd, type Script, type Step, type Usage } from "./script.ts";

/** The server's end of a connection. Each promise settles when the bytes have left us, or when nobody is there. */
export interface Line {
  readonly isGone: boolean;
  readonly gone: Promise<void>;
  headers(): Promise<void>;
  write(bytes: Uint8Array): Promise<void>;
  end(): Promise<void>;
  fail(status: number, headers: Readonly<Record<string, string>>, body: unknown): Promise<void>;
  reset(): void;
}

const USAGE: Usage = { input: 10, output: 5 };
/** A pace, not a wait: nothing is ordered by it. */
const DRIBBLE_MS = 1;

export class Player {
  readonly #line: Line;
  readonly #gates: Gates;
  readonly #format: Format;
  readonly #rendering: Rendering;
  readonly #script: Script;
  #begun = false;
  #bytewise = false;

  constructor(line: Line, gates: Gates, format: Format, rendering: Rendering, script: Script) {
    this.#line = line;
    this.#gates = gates;
    this.#format = format;
    this.#rendering = rendering;
    this.#script = script;
  }

  async play(): Promise<void> {
    for (const step of this.#script) {
      if (this.#line.isGone) return;
      await this.#take(step);
    }
    if (this.#script.some(isEnd) || this.#line.isGone) return;
    await this.#end({ finish: this.#script.some((step) => "call" in step) ? "calls" : "stop" });
  }

  async #take(step: Step): Promise<void> {
    if (isEnd(step)) await this.#end(step);
    else if ("hold" in step) await this.#hold(step.hold);
    else if ("headers" in step) await this.#line.headers();
    else if ("begin" in step) await this.#send("");
    else if ("endBlock" in step) await this.#send(this.#rendering.endBlock());
    else if ("ping" in step) await this.#send(this.#rendering.ping());
    else if ("bytewise" in step) this.#bytewise = true;
    else if ("data" in step) await this.#send(`data: ${step.data}\n\n`);
    else if ("call" in step) await this.#call(step);
    else if ("reasoning" in step) await this.#send(this.#rendering.reasoning(step.reasoning, step.signed ?? true));
    else if ("refusal" in step) await this.#send(this.#rendering.refusal(step.refusal));
    else await this.#send(this.#rendering.text(step.text));
  }

  async #call(step: CallStep): Promise<void> {
    await this.#send(this.#rendering.callBegin(step.call.name, step.call.id));
    for (const [index, piece] of argumentPieces(step).entries()) {
      await this.#send(this.#rendering.callPiece(piece));
      if (index === 0 && step.holdInside !== undefined) await this.#hold(step.holdInside);
    }
    if (step.unfinished === undefined) await this.#send(this.#rendering.callEnd());
  }

  async #end(step: End): Promise<void> {
    if ("reset" in step) this.#line.reset();
    else if ("silence" in step) await this.#line.gone;
    else if ("dribble" in step) await this.#dribble(step.dribble);
    else if ("status" in step) await this.#fail(step);
    else if ("cut" in step) await this.#line.end();
    else {
      const last =
        "error" in step
          ? this.#rendering.error(step.error, step.message ?? `The provider says: ${step.error}.`)
          : this.#rendering.finish(step.finish, step.usage ?? USAGE);
      // An error may be the first thing there is; everything else has an opening.
      await ("error" in step && !this.#begun ? this.#put(last) : this.#send(last));
      await this.#line.end();
    }
  }

  async #fail(step: Extract<End, { readonly status: number }>): Promise<void> {
    const headers = step.retryAfter === undefined ? {} : { "retry-after": step.retryAfter };
    const message = step.message ?? `The provider says: ${step.status}.`;
    await this.#line.fail(step.status, headers, this.#format.failure(step.status, message));
  }

  async #dribble(text: string): Promise<void> {
    while (!this.#line.isGone) {
      await this.#send(this.#rendering.text(text));
      await pause(DRIBBLE_MS);
    }
  }

  async #hold(gate: string): Promise<void> {
    if (this.#line.isGone) return;
    await Promise.race([this.#gates.pass(gate), this.#line.gone]);
  }

  async #send(events: string): Promise<void> {
    const opening = this.#begun ? "" : this.#rendering.begin(this.#textFirst());
    this.#begun = true;
    await this.#put(opening + events);
  }

  async #put(events: string): Promise<void> {
    if (this.#line.isGone || events === "") return;
    const bytes = new TextEncoder().encode(events);
    if (!this.#bytewise) return this.#line.write(bytes);
    for (let at = 0; at < bytes.length && !this.#line.isGone; at++) {
      await this.#line.write(bytes.subarray(at, at + 1));
      await turn();
    }
  }

  #textFirst(): boolean {
    const first = this.#script.find((step) => ["text", "reasoning", "refusal", "call"].some((name) => name in step));
    return first !== undefined && "text" in first;
  }
}
