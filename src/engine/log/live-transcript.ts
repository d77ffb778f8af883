// The conversation of a session as its live run is given it: read once, then kept up with the log as it grows.
//
// Invariants
// 1. It begins with the run that made the last summary. So neither what is read nor what is kept grows with the number
//    of runs, as long as agents make summaries.
// 2. It cannot be wrong, only behind: a position that is missing is read from the log.

import { CONTEXT_KEPT_BYTES, PAGE_EVENTS_MAX } from "../../core/limits.ts";
import type { Recorded } from "../../core/model/event.ts";
import { type Seq, type SessionId, turnId } from "../../core/model/ids.ts";
import type { InboxItem } from "../../core/model/inbox.ts";
import type { Run } from "../../core/model/run.ts";
import type { Message } from "../../core/read/transcript.ts";
import { Book } from "../../core/read/transcript-builder.ts";
import { heapBytes } from "../../core/size.ts";
import type { Store } from "../../ports/store.ts";

/** What is durable of a session. */
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
  /** The last position it knows. */
  #cursor: Seq = 0;
  /** What its events take, and what they took when the live run started. */
  #bytes = 0;
  #bytesBefore = 0;

  /** Whether it takes too much memory to be kept between runs. */
  get isLarge(): boolean {
    return this.#bytes > CONTEXT_KEPT_BYTES;
  }

  /** What was recorded. What is not the very next position is left for the next reading. */
  note(events: readonly Recorded[]): void {
    for (const event of events) {
      if (event.seq !== this.#cursor + 1) continue; // @fault transcript-skips-events
      this.#book.note(event);
      this.#cursor = event.seq;
      this.#count(event);
    }
  }

  /** Everything that is durable now. */
  async read(store: Store, lane: Durable, run: Run): Promise<readonly Message[]> {
    if (this.#cursor === 0) this.#begin(lane, run);
    // @fault transcript-stands-still:read
    while (this.#cursor < lane.durable.head) {
      const page = await store.read(lane.id, { after: this.#cursor, limit: PAGE_EVENTS_MAX });
      // Other readings may have been faster; what they have noted is not noted again.
      if ((page.gapTo ?? 0) > this.#cursor) this.#beginBehind(page.gapTo ?? 0, run);
      if (page.events.length === 0) break;
      this.note(page.events);
    }
    return this.#book.messages();
  }

  /** What was removed while it was read is missing in the middle: what came before it is as good as removed. */
  #beginBehind(gapTo: Seq, { id }: Run): void {
    // Only a session without a summary is cut where a model would read. It begins with a run, and says so.
    this.#book = new Book("model", { role: "note", runId: id, item: REMOVED }); // @fault transcript-with-a-hole
    this.#cursor = gapTo;
    this.#bytes = 0;
    this.#bytesBefore = 0;
  }

  /** The first turn of a session's first run needs no reading: all there is is its prompt. */
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
