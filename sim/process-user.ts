// What a simulated call does with processes: it runs, starts, waits, and remembers what it was told.
import type { Feedback } from "../src/core/model/event.ts";
import type { ProcessId } from "../src/core/model/ids.ts";
import type { LiveCall } from "../src/ports/agent.ts";
import type { CommandResult, ProcessHandle, ProcessResult, RunOptions, StartOptions } from "../src/ports/spawner.ts";

/** Who must be told what a call was told. */
export interface ProcessWatch {
  /** Whether this process is still going on in the world. */
  goesOn(id: ProcessId): boolean;
  told(call: LiveCall, result: ProcessResult): void;
  ran(call: LiveCall, ran: CommandResult): void;
  /** An operation was refused. `waits`: how many others the call still waits for. */
  refused(call: LiveCall, error: unknown, waits: number): void;
}

export class ProcessUser {
  /** Operations that it waits for. */
  pending = 0;
  readonly handles: ProcessHandle[] = [];
  /** Results it was told; true: it had begun to wait before the process had ended. */
  readonly told = new Map<ProcessId, boolean>();
  /** From here on it has told what it had to tell. */
  over = false;
  readonly #call: LiveCall;
  readonly #watch: ProcessWatch;

  constructor(call: LiveCall, watch: ProcessWatch) {
    this.#call = call;
    this.#watch = watch;
  }

  run(command: string, options: RunOptions): void {
    this.#do(this.#call.processes.run(command, options), (ran) => {
      this.#watch.ran(this.#call, ran);
      if (ran.kind === "background") this.handles.push(ran.process);
      else this.#tell(ran, true);
    });
  }

  start(command: string, options: StartOptions & { readonly feedback: Feedback }): void {
    this.#do(this.#call.processes.start(command, options), (handle) => this.handles.push(handle));
  }

  find(id: ProcessId): void {
    this.#do(this.#call.processes.get(id), (handle) => this.handles.push(handle));
  }

  wait(handle: ProcessHandle, limitMs: number | undefined): void {
    const early = this.#watch.goesOn(handle.id);
    this.#do(handle.wait(limitMs === undefined ? {} : { limitMs }), (result) => {
      if (result !== undefined) this.#tell(result, early);
    });
  }

  cancel(handle: ProcessHandle, note: string): void {
    this.#do(handle.cancel({ kind: "user", note }), () => undefined);
  }

  #tell(result: ProcessResult, early: boolean): void {
    this.#watch.told(this.#call, result);
    if (!this.over) this.told.set(result.processId, early || this.told.get(result.processId) === true);
  }

  #do<T>(coming: Promise<T>, then: (value: T) => void): void {
    this.pending += 1;
    coming.then(
      (value) => {
        this.pending -= 1;
        then(value);
      },
      (error: unknown) => {
        this.pending -= 1;
        this.#watch.refused(this.#call, error, this.pending);
      },
    );
  }
}
