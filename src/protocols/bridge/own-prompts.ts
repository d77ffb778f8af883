// The prompts of this bridge that have no outcome yet, so that they can be cancelled.
import type { RunControl } from "../../ports/control.ts";
import type { RequestId } from "./message.ts";

export class OwnPrompts {
  readonly #live = new Map<RunControl, RequestId | undefined>();

  /** Returns a disposer. */
  add(run: RunControl, id: RequestId | undefined): () => void {
    this.#live.set(run, id);
    return () => void this.#live.delete(run);
  }

  /** The run of a request, whose id is known before the run has one. If the host uses an id twice, the later run. */
  of(id: RequestId): RunControl | undefined {
    return this.live.findLast((run) => this.#live.get(run) === id);
  }

  get live(): readonly RunControl[] {
    return [...this.#live.keys()];
  }
}
