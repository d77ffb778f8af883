// An incremental parser for event streams (`text/event-stream`).
//
// Invariants
// 1. The parsed events do not depend on the chunk boundaries, even inside a character or between CR and LF.
// 2. An event exists only once its blank line has arrived. A stream cut before that line never contained the event.
// 3. The state kept between two chunks is bounded.
import { ControlError } from "../core/errors.ts";

/** One event of a stream. */
export interface SseMessage {
  /** The value of the `event` line, or `message` without one. */
  readonly event: string;
  readonly data: string;
  /** The last id up to and including this event. A client sends it as `Last-Event-ID` when it reconnects. */
  readonly lastEventId: string;
}

/**
 * Maximum characters of one event. A log event has at most about 1 MiB of text twice over, and JSON writes a control
 * character as six; a sender that exceeds this does not implement Belay's protocol.
 */
export const EVENT_CHARS_MAX = 32 * 1024 * 1024;

const LF = 0x0a;
const BOM = 0xfeff;

export class SseParser {
  readonly #charsMax: number;
  // Keeps an incomplete character for the next chunk. The parser removes the byte order mark itself, because not every
  // platform removes it exactly once when the mark is split between chunks.
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #begun = false;
  #line = "";
  #skipLf = false;
  #event = "";
  #data: string[] = [];
  #chars = 0;
  #idSeen = "";
  #lastEventId = "";
  #retryMs: number | undefined = undefined;

  constructor(charsMax: number = EVENT_CHARS_MAX) {
    this.#charsMax = charsMax;
  }

  /** The id of the last event, even of an event without data. */
  get lastEventId(): string {
    return this.#lastEventId;
  }

  /** The reconnection delay that the server sent in a `retry` line, if any. */
  get retryMs(): number | undefined {
    return this.#retryMs;
  }

  /** Returns the events that these bytes complete. Throws if an event exceeds the maximum size. */
  push(bytes: Uint8Array): readonly SseMessage[] {
    const text = this.#decoder.decode(bytes, { stream: true });
    const messages: SseMessage[] = [];
    if (text === "") return messages;
    let from = (this.#skipLf && text.charCodeAt(0) === LF) || (!this.#begun && text.charCodeAt(0) === BOM) ? 1 : 0;
    this.#skipLf = false;
    this.#begun = true;
    // CR and LF are each searched for only after the last match was consumed: most streams have only one of the two.
    let cr = text.indexOf("\r", from);
    let lf = text.indexOf("\n", from);
    while (cr !== -1 || lf !== -1) {
      const end = cr === -1 || (lf !== -1 && lf < cr) ? lf : cr;
      this.#lineEnded(this.#line + text.slice(from, end), messages);
      this.#line = "";
      from = end + 1;
      if (end === cr && from === text.length) this.#skipLf = true;
      else if (end === cr && text.charCodeAt(from) === LF) from += 1;
      if (cr !== -1 && cr < from) cr = text.indexOf("\r", from);
      if (lf !== -1 && lf < from) lf = text.indexOf("\n", from);
    }
    this.#line += text.slice(from);
    if (this.#line.length + this.#chars > this.#charsMax) throw tooLarge(this.#charsMax);
    return messages;
  }

  /** Handles one complete line: an empty line ends the event, any other adds a field to it. */
  #lineEnded(line: string, messages: SseMessage[]): void {
    if (line === "") {
      this.#dispatch(messages);
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line.charAt(colon + 1) === " " ? colon + 2 : colon + 1);
    this.#field(name, value);
    if (this.#chars > this.#charsMax) throw tooLarge(this.#charsMax);
  }

  #field(name: string, value: string): void {
    switch (name) {
      case "event":
        this.#event = value;
        return;
      case "data":
        this.#data.push(value);
        this.#chars += value.length + 1;
        return;
      case "id":
        if (!value.includes("\0")) this.#idSeen = value;
        return;
      case "retry":
        if (/^[0-9]+$/.test(value)) this.#retryMs = Number(value);
        return;
      default:
        // The format requires unknown fields to be ignored.
        return;
    }
  }

  #dispatch(messages: SseMessage[]): void {
    this.#lastEventId = this.#idSeen;
    // One `data` line without a value is an event with empty data; without any `data` line there is no event.
    if (this.#data.length > 0) {
      const data = this.#data.length === 1 ? (this.#data[0] ?? "") : this.#data.join("\n");
      messages.push({ event: this.#event === "" ? "message" : this.#event, data, lastEventId: this.#lastEventId });
      this.#data = [];
    }
    this.#event = "";
    this.#chars = 0;
  }
}

const tooLarge = (max: number): ControlError =>
  new ControlError("internal", `An event of the stream has more than ${max} characters; Belay never sends one.`);
