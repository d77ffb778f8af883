// The prompts that came through this bridge and have no outcome yet: whose they are is known, so they can be stopped.
import type { RunControl } from "../../ports/control.ts";
import type { RequestId } from "./message.ts";

export class OwnPrompts {
  readonly #live = new Map<RunControl, RequestId | undefined>();

  /** The answer takes it out again. */
  add(run: RunControl, id: RequestId | undefined): () => void {
    this.#live.set(run, id);
    return () => void this.#live.delete(run);
  }

  /** That of a request, which has an id before its run has one. If the host uses an id twice: the later one. */
  of(id: RequestId): RunControl | undefined {
    return this.live.findLast((run) => this.#live.get(run) === id);
  }

  get live(): readonly RunControl[] {
    return [...this.#live.keys()];
  }
}
