// One scan of all processes for several trees at once: it costs the same for one tree and for a hundred.
//
// Invariant: `take` resolves with a scan that began after the call. An older scan could miss a new process.
import type { Seen } from "./proc.ts";
import { PROC_PROCESS_TABLE } from "./proc-process-table.ts";

export class SharedScan {
  readonly #scan: () => Promise<readonly Seen[]>;
  #current: Promise<readonly Seen[]> | undefined;
  #next: Promise<readonly Seen[]> | undefined;

  constructor(scan: () => Promise<readonly Seen[]> = () => PROC_PROCESS_TABLE.listProcesses()) {
    this.#scan = scan;
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
    const scan = this.#scan();
    const over = (): void => {
      if (this.#current === scan) this.#current = undefined;
    };
    this.#current = scan;
    scan.then(over, over);
    return scan;
  }
}
