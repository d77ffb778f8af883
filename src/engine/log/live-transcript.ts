// The conversation of a session for its live run: read once, then updated as the log grows.
//
// Invariants
// 1. It begins with the run that made the last summary. So neither what is read nor what is kept grows with the number
//    of runs, as long as agents make summaries.
// 2. It is never wrong, only behind: a missing position is read from the log.

import { CONTEXT_KEPT_BYTES, PAGE_EVENTS_MAX } from "../../core/limits.ts";
import type { Recorded } from "../../core/model/event.ts";
import { type Seq, type SessionId, turnId } from "../../core/model/ids.ts";
import type { InboxItem } from "../../core/model/inbox.ts";
import type { Run } from "../../core/model/run.ts";
import type { Message } from "../../core/read/transcript.ts";
import { Book } from "../../core/read/transcript-builder.ts";
import { heapBytes } from "../../core/size.ts";
import type { Store } from "../../ports/store.ts";

/** The durable state of a session. */
interface Durable {
  readonly id: SessionId;
  readonly durable: { readonly head: Seq; readonly contextFrom: Seq };
}

const REMOVED: InboxItem = {
  kind: "reminder",
  text: "Earlier messages of this conversation were removed to save space.",
};

export class LiveTranscript {
  #book = new Book("model");
  /** The last position it contains. */
  #cursor: Seq = 0;
  /** The size of its events, and their size when the live run started. */
  #bytes = 0;
  #bytesBefore = 0;

  /** Whether it is too large to be kept between runs. */
  get isLarge(): boolean {
    return this.#bytes > CONTEXT_KEPT_BYTES;
  }

  /** Adds recorded events. An event that is not the next position is left to the next read. */
  note(events: readonly Recorded[]): void {
    for (const event of events) {
      if (event.seq !== this.#cursor + 1) continue; // @fault transcript-skips-events
      this.#book.note(event);
      this.#cursor = event.seq;
      this.#count(event);
    }
  }

  /** Returns the conversation up to the durable head. */
  async read(store: Store, lane: Durable, run: Run): Promise<readonly Message[]> {
    if (this.#cursor === 0) this.#begin(lane, run);
    // @fault transcript-stands-still:read
    while (this.#cursor < lane.durable.head) {
      const page = await store.read(lane.id, { after: this.#cursor, limit: PAGE_EVENTS_MAX });
      // Concurrent reads may have been faster; `note` skips their events.
      if ((page.gapTo ?? 0) > this.#cursor) this.#beginBehind(page.gapTo ?? 0, run);
      if (page.events.length === 0) break;
      this.note(page.events);
    }
    return this.#book.messages();
  }

  /** Events were removed while it was read: the part before the gap is dropped, too. */
  #beginBehind(gapTo: Seq, { id }: Run): void {
    // Only a session without a summary is cut within a model's context. It then begins with a run, after this note.
    this.#book = new Book("model", { role: "note", runId: id, item: REMOVED }); // @fault transcript-with-a-hole
    this.#cursor = gapTo;
    this.#bytes = 0;
    this.#bytesBefore = 0;
  }

  /** The first turn of a session's first run needs no read: the conversation is its prompt. */
  #begin(lane: Durable, { id, prompt, acceptedAt }: Run): void {
    this.#cursor = Math.max(0, lane.durable.contextFrom - 1);
    const first = acceptedAt + 2;
    if (acceptedAt !== 2 || lane.durable.head !== first) return;
    this.#book.note({ type: "run.accepted", runId: id, prompt, delivery: "queue" });
    this.#book.note({ type: "run.started", runId: id });
    this.#book.note({ type: "turn.requested", runId: id, turnId: turnId(id, 1) });
    this.#cursor = first;
  }

  #count(event: Recorded): void {
    if (event.type === "run.started") this.#bytesBefore = this.#bytes;
    this.#bytes += heapBytes(event);
    if (event.type !== "session.compacted") return;
    this.#bytes -= this.#bytesBefore;
    this.#bytesBefore = 0;
  }
}
