// Looks at everybody on behalf of several trees at once: a look costs the same for one tree and for a hundred.
//
// Invariant: whoever asks is told of a look that began after they asked. An older one could have missed somebody.
import type { Seen } from "./proc.ts";
import { PROC_PROCESS_TABLE } from "./proc-process-table.ts";

export class SharedScan {
  readonly #look: () => Promise<readonly Seen[]>;
  #current: Promise<readonly Seen[]> | undefined;
  #next: Promise<readonly Seen[]> | undefined;

  constructor(look: () => Promise<readonly Seen[]> = () => PROC_PROCESS_TABLE.listProcesses()) {
    this.#look = look;
  }

  take(): Promise<readonly Seen[]> {
    if (this.#current === undefined) return this.#begin();
    this.#next ??= this.#current.then(
      () => this.#begin(),
      () => this.#begin(),
    );
    return this.#next;
  }

  #begin(): Promise<readonly Seen[]> {
    this.#next = undefined;
    const look = this.#look();
    const over = (): void => {
      if (this.#current === look) this.#current = undefined;
    };
    this.#current = look;
    look.then(over, over);
    return look;
  }
}
