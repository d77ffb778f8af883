// Encodes events as frames of an event stream. Each recorded event is encoded once for all readers.
//
// Invariants
// 1. Only recorded events have an `id`: a reader can resume only from positions in the log.
// 2. A frame is one `data` line, ended by a blank line. JSON contains no line ends.
// 3. Frames do not contain paths of the server's files.

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
  /** Encoded events. An entry lives as long as its event, which the feed of its session bounds. */
  readonly #texts = new WeakMap<Recorded, string>();

  of(event: SentText): string {
    return "seq" in event ? this.#recorded(event) : frame(event.type, JSON.stringify(event));
  }

  /** The frame of an event in the feed of all sessions. */
  feedEvent(feedEvent: AllSessionsEvent): string {
    const { type, cursor } = feedEvent;
    if (type !== "event") return frame(type, JSON.stringify({ cursor }), cursor);
    const text = this.#recorded(feedEvent.event);
    const event = text.slice(text.indexOf(DATA) + DATA.length, -FRAME_END.length);
    const { sessionId } = feedEvent;
    const data = `{"cursor":${JSON.stringify(cursor)},"sessionId":${JSON.stringify(sessionId)},"event":${event}}`;
    return frame(feedEvent.event.type, data, cursor);
  }

  page(page: OutputPage): string {
    return frame("page", JSON.stringify(page), page.to);
  }

  #recorded(event: Recorded): string {
    const known = this.#texts.get(event);
    if (known !== undefined) return known;
    const sent = event.type === "process.settled" ? withoutDirectory(event) : event;
    const text = frame(event.type, JSON.stringify(sent), event.seq);
    this.#texts.set(event, text);
    return text;
  }
}

/** Removes the server's directory with the output: clients read the output over HTTP. */
export function withoutDirectory<T extends { readonly output?: OutputNote }>(result: T): T {
  if (result.output?.dir === undefined) return result;
  const { dir: _, ...output } = result.output;
  return { ...result, output };
}

const DATA = "\ndata: ";
/** The blank line at the end of a frame. JSON contains none, so it never appears inside a frame. */
export const FRAME_END = "\n\n";

const frame = (type: string, data: string, id?: number | string): string =>
  `${id === undefined ? "" : `id: ${id}\n`}event: ${type}${DATA}${data}${FRAME_END}`;
