// Appends on their way to the writer. Those of one round of the event loop travel together, in a message or two; those
// that are made while the writer is at work wait for it, and share its next commit.
//
// Invariants
// 1. Appends reach the writer in the order in which they were made.
// 2. Each gets its own answer, after the commit that it speaks of.
import { ControlError } from "../../../core/errors.ts";
import type { Seq, SessionId } from "../../../core/model/ids.ts";
import type { Appended, Batch } from "../../../ports/store.ts";
import { type Cell, packBatch, unpackWritten } from "./message.ts";

interface Group {
  readonly cells: Cell[];
  readonly waiting: Waiting[];
}

interface Waiting {
  readonly session: SessionId;
  readonly resolve: (answer: Appended) => void;
  readonly reject: (error: unknown) => void;
}

/** Told of every answer before whoever appended gets it. `undefined`: nobody knows where the log is now. */
type Note = (session: SessionId, head: Seq | undefined) => void;

/** As much of the writer's thread as is needed here. */
interface Writer {
  request(verb: "append", cells: readonly Cell[]): Promise<readonly Cell[]>;
}

/**
 * So many are worth a message although the round is not over, if the writer has nothing to do: else it would stand
 * still while everybody decides, and everybody while it commits.
 */
const EARLY_APPENDS = 12;

export class Outbox {
  readonly #writer: Writer;
  readonly #note: Note;
  #group: Group | undefined;
  /** Messages the writer has not answered yet: one, unless somebody was in a hurry. */
  #inFlight = 0;

  constructor(writer: Writer, note: Note) {
    this.#writer = writer;
    this.#note = note;
  }

  /** Encodes at once: what the caller does to its objects afterwards is not noticed. */
  add(batch: Batch, elapsed = 0): Promise<Appended> {
    return new Promise((resolve, reject) => {
      const { cells, waiting } = this.#gathering();
      const length = cells.length;
      try {
        packBatch(cells, batch, elapsed);
      } catch (error) {
        cells.length = length;
        throw error;
      }
      // @fault acknowledged-before-the-commit, call-begun-before-its-record
      waiting.push({ session: batch.session, resolve, reject });
      if (this.#inFlight === 0 && waiting.length >= EARLY_APPENDS) this.flush();
    });
  }

  /** Sends what has gathered, without waiting for the round to end. */
  flush(): void {
    const group = this.#group;
    this.#group = undefined;
    if (group === undefined || group.waiting.length === 0) return;
    this.#inFlight += 1;
    this.#writer
      .request("append", group.cells)
      .then(
        (answer) => this.#settle(group, answer),
        (error) => {
          for (const waiting of group.waiting) this.#fail(waiting, error);
        },
      )
      .finally(() => {
        this.#inFlight -= 1;
        this.#flushWhenFree();
      });
  }

  #flushWhenFree(): void {
    if (this.#inFlight === 0) this.flush();
  }

  #gathering(): Group {
    if (this.#group === undefined) {
      this.#group = { cells: [], waiting: [] };
      // Not a microtask: what other callbacks of this round of the event loop append shall share the message.
      setImmediate(() => this.#flushWhenFree());
    }
    return this.#group;
  }

  #settle({ waiting }: Group, answer: readonly Cell[]): void {
    for (const [index, one] of waiting.entries()) {
      const written = unpackWritten(answer, index);
      if (written.kind === "failed") {
        this.#fail(one, new ControlError(written.code, written.message));
        continue;
      }
      // @fault acknowledged-before-the-commit:note, call-begun-before-its-record:note
      if ("head" in written) this.#note(one.session, written.head);
      one.resolve(written);
    }
  }

  #fail({ session, reject }: Waiting, error: ControlError): void {
    if (error.code === "unavailable") this.#note(session, undefined);
    reject(error);
  }
}
