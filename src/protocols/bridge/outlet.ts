// The way out: lines to a host that may be slow, or not read at all.
//
// Invariants
// 1. What was written and not taken is at most HELD_BYTES_MAX and one line. Nothing else is made into a line before.
// 2. Answers go before events: whoever asked is not kept waiting by what only goes by.
// 3. Once closed it takes everything and writes nothing. Nobody waits for a host that has gone.
import type { Writable } from "node:stream";
import { HELD_BYTES_MAX } from "./limits.ts";

/** Made when there is room for it. Undefined: it is not wanted any more. */
export type MakeLine = () => string | undefined;

interface Waiting {
  readonly make: MakeLine;
  readonly out: () => void;
}

export class Outlet {
  readonly #output: Writable;
  readonly #answers: Waiting[] = [];
  readonly #events: Waiting[] = [];
  readonly #flushed: (() => void)[] = [];
  #held = 0;
  #closed = false;

  constructor(output: Writable) {
    this.#output = output;
  }

  /** Resolves when the line is on its way. */
  answer(make: MakeLine): Promise<void> {
    return this.#wait(this.#answers, make);
  }

  /** The same for what is only told. Whoever reads it from a log reads on when this resolves. */
  tell(make: MakeLine): Promise<void> {
    return this.#wait(this.#events, make);
  }

  /** Resolves when the host has taken everything there is, or never will. */
  flushed(): Promise<void> {
    if (this.#closed || (this.#held === 0 && this.#answers.length + this.#events.length === 0)) {
      return Promise.resolve();
    }
    return new Promise((resolve) => this.#flushed.push(resolve));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const { out } of [...this.#answers.splice(0), ...this.#events.splice(0)]) out();
    this.#tellFlushed();
  }

  #wait(lane: Waiting[], make: MakeLine): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise((out) => {
      lane.push({ make, out });
      this.#pump();
    });
  }

  #pump(): void {
    while (!this.#closed && this.#held < HELD_BYTES_MAX) {
      const next = this.#answers.shift() ?? this.#events.shift();
      if (next === undefined) break;
      const line = next.make();
      if (line !== undefined) this.#write(line);
      next.out();
    }
    if (this.#held === 0 && this.#answers.length + this.#events.length === 0) this.#tellFlushed();
  }

  #write(line: string): void {
    const bytes = Buffer.byteLength(line);
    this.#held += bytes;
    this.#output.write(line, (error) => {
      this.#held -= bytes;
      if (error !== undefined && error !== null) this.close();
      else this.#pump();
    });
  }

  #tellFlushed(): void {
    for (const resolve of this.#flushed.splice(0)) resolve();
  }
}
