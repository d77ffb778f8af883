// Reads an event stream (`text/event-stream`) as it comes in, piece by piece.
//
// Invariants
// 1. What comes out does not depend on how the bytes were cut: not inside a character, not between CR and LF.
// 2. An event that its blank line has not ended yet does not exist. If the stream is cut there, it never did.
// 3. What is kept between two pieces is bounded.
import { ControlError } from "../core/errors.ts";

/** One event of a stream. */
export interface SseMessage {
  /** What the `event` line said; `message` without one. */
  readonly event: string;
  readonly data: string;
  /** What whoever connects again says it has heard: the last id seen up to and with this event. */
  readonly lastEventId: string;
}

/**
 * The most that one event may have. A fact carries at most about 1 MiB of text twice over, and JSON writes a control
 * character as six; a sender that goes beyond this does not speak our protocol.
 */
export const EVENT_CHARS_MAX = 32 * 1024 * 1024;

const LF = 0x0a;
const BOM = 0xfeff;

export class SseParser {
  readonly #charsMax: number;
  // Keeps half a character for the next piece. The byte order mark is ours to take away: not every platform does it
  // exactly once when the mark itself comes in pieces.
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

  /** The id of the last event, also of one without data. */
  get lastEventId(): string {
    return this.#lastEventId;
  }

  /** How long the sender wants us to wait before we connect again, if it has said so. */
  get retryMs(): number | undefined {
    return this.#retryMs;
  }

  /** The events that these bytes complete. Throws if one has become larger than any may be. */
  push(bytes: Uint8Array): readonly SseMessage[] {
    const text = this.#decoder.decode(bytes, { stream: true });
    const messages: SseMessage[] = [];
    if (text === "") return messages;
    let from = (this.#skipLf && text.charCodeAt(0) === LF) || (!this.#begun && text.charCodeAt(0) === BOM) ? 1 : 0;
    this.#skipLf = false;
    this.#begun = true;
    // Each is looked for once per line end, not once per line: most streams have only one of the two.
    let cr = text.indexOf("\r", from);
    let lf = text.indexOf("\n", from);
    while (cr !== -1 || lf !== -1) {
      const end = cr === -1 || (lf !== -1 && lf < cr) ? lf : cr;
      this.#end(this.#line + text.slice(from, end), messages);
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

  /** A line has ended: an empty one ends an event, any other adds to it. */
  #end(line: string, messages: SseMessage[]): void {
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
        // A field that nobody has defined is passed over, as the format says.
        return;
    }
  }

  #dispatch(messages: SseMessage[]): void {
    this.#lastEventId = this.#idSeen;
    // One `data` line without a value is an event with empty data; without any such line there is no event.
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
  new ControlError("internal", `An event of the stream has more than ${max} characters, which none of Belay's has.`);
