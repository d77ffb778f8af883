// The transcript of a session whose live run has asked for it: read once, then kept up with the log as it grows.
import type { Recorded } from "../core/event.ts";
import { type Seq, type SessionId, turnId } from "../core/ids.ts";
import { PAGE_EVENTS_MAX } from "../core/limits.ts";
import type { Run } from "../core/run.ts";
import { Book, type Message } from "../core/transcript.ts";
import type { Store } from "../ports.ts";

/** What is durable of a session. */
interface Durable {
  readonly id: SessionId;
  readonly durable: { readonly head: Seq };
}

export class LiveTranscript {
  #book = new Book();
  /** The last position it knows. */
  #cursor: Seq = 0;

  /** What was recorded. What is not the very next position is left for the next reading. */
  note(events: readonly Recorded[]): void {
    for (const event of events) {
      if (event.seq !== this.#cursor + 1) continue; // @fault transcript-skips-events
      this.#book.note(event);
      this.#cursor = event.seq;
    }
  }

  /** Everything that is durable now. */
  async read(store: Store, lane: Durable, run: Run): Promise<readonly Message[]> {
    if (this.#cursor === 0) this.#begin(lane, run);
    // @fault transcript-stands-still:read
    while (this.#cursor < lane.durable.head) {
      const page = await store.read(lane.id, { after: this.#cursor, limit: PAGE_EVENTS_MAX });
      // Other readings may have been faster; what they have noted is not noted again.
      if ((page.gapTo ?? 0) > this.#cursor) this.#beginBehind(page.gapTo ?? 0);
      if (page.events.length === 0) break;
      this.note(page.events);
    }
    return this.#book.told();
  }

  /** What was removed while it was read is missing in the middle: what came before it is as good as removed. */
  #beginBehind(gapTo: Seq): void {
    this.#book = new Book(); // @fault transcript-with-a-hole
    this.#cursor = gapTo;
  }

  /** The first turn of a session's first run needs no reading: all there is is its prompt. */
  #begin(lane: Durable, { id, prompt, acceptedAt }: Run): void {
    const first = acceptedAt + 2;
    if (acceptedAt !== 2 || lane.durable.head !== first) return;
    this.#book.note({ type: "run.accepted", runId: id, prompt, delivery: "queue" });
    this.#book.note({ type: "run.started", runId: id });
    this.#book.note({ type: "turn.requested", runId: id, turnId: turnId(id, 1) });
    this.#cursor = first;
  }
}
