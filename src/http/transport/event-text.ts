// Events as a stream carries them. Each fact is written once, however many read it.
//
// Invariants
// 1. Only a fact has an `id`: what can be resumed from is what is in the log.
// 2. A frame is whole: one `data` line, ended by a blank one. JSON has no line ends of its own.
// 3. Where the server keeps its files is not said.

import type { Delta, Gap } from "../../core/model/delta.ts";
import type { OutputNote, Recorded } from "../../core/model/event.ts";
import type { AllSessionsEvent } from "../../ports/control.ts";
import type { OutputPage } from "../../ports/spawner.ts";
import { STREAM_RETRY_MS } from "../limits.ts";

export type SentText = Recorded | Delta | Gap;

export const FIRST = `retry: ${STREAM_RETRY_MS}\n\n`;
export const HEARTBEAT = ": \n\n";
export const bye = (reason: string): string => frame("bye", JSON.stringify({ reason }));

export class EventTexts {
  /** Kept as long as the fact itself is kept, which the feed of its session bounds. */
  readonly #texts = new WeakMap<Recorded, string>();

  of(heard: SentText): string {
    return "seq" in heard ? this.#recorded(heard) : frame(heard.type, JSON.stringify(heard));
  }

  /** For whoever watches all sessions. */
  told(told: AllSessionsEvent): string {
    const { type, cursor } = told;
    if (type !== "event") return frame(type, JSON.stringify({ cursor }), cursor);
    const text = this.#recorded(told.event);
    const event = text.slice(text.indexOf(DATA) + DATA.length, -FRAME_END.length);
    const { sessionId } = told;
    const data = `{"cursor":${JSON.stringify(cursor)},"sessionId":${JSON.stringify(sessionId)},"event":${event}}`;
    return frame(told.event.type, data, cursor);
  }

  page(page: OutputPage): string {
    return frame("page", JSON.stringify(page), page.to);
  }

  #recorded(event: Recorded): string {
    const known = this.#texts.get(event);
    if (known !== undefined) return known;
    const told = event.type === "process.settled" ? withoutPlace(event) : event;
    const text = frame(event.type, JSON.stringify(told), event.seq);
    this.#texts.set(event, text);
    return text;
  }
}

/** Without the folder of the server that holds the output: whoever asks over HTTP is given the output itself. */
export function withoutPlace<T extends { readonly output?: OutputNote }>(told: T): T {
  if (told.output?.dir === undefined) return told;
  const { dir: _, ...output } = told.output;
  return { ...told, output };
}

const DATA = "\ndata: ";
/** The blank line. JSON has none inside, so only the end of a frame ends like this. */
export const FRAME_END = "\n\n";

const frame = (type: string, data: string, id?: number | string): string =>
  `${id === undefined ? "" : `id: ${id}\n`}event: ${type}${DATA}${data}${FRAME_END}`;
