// Queues appends for the writer. Those of one round of the event loop share a message or two; those made while the
// writer is busy wait for it, and share its next commit.
//
// Invariants
// 1. Appends reach the writer in the order in which they were made.
// 2. Each append gets its own result, after its commit.
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

/** Called with every result before the append resolves. `undefined`: the head is unknown. */
type Note = (session: SessionId, head: Seq | undefined) => void;

/** The part of the writer's thread that is used here. */
interface Writer {
  request(verb: "append", cells: readonly Cell[]): Promise<readonly Cell[]>;
}

/**
 * An idle writer is sent this many appends before the round is over: otherwise it would be idle while callers decide,
 * and they would be while it commits.
 */
const EARLY_APPENDS = 12;

export class Outbox {
  readonly #writer: Writer;
  readonly #note: Note;
  #group: Group | undefined;
  /** Messages without a response: one, unless a caller has flushed. */
  #inFlight = 0;

  constructor(writer: Writer, note: Note) {
    this.#writer = writer;
    this.#note = note;
  }

  /** Encodes at once, so that later changes to the caller's objects have no effect. */
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

  /** Sends the queued appends without waiting for the end of the round. */
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
      // Not a microtask: appends of other callbacks in this round of the event loop share the message.
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
