// The facts of a session or a run, read off a stream that may be cut, repeat itself or be at fault.
//
// Invariants
// 1. Each fact comes once and in order. One that was heard is dropped; one that is missing is asked for again, and if
//    it never comes the reader is told, not left with a hole.
// 2. Text that was heard is not heard again.
import { ControlError } from "../core/errors.ts";
import type { Delta, Gap } from "../core/model/delta.ts";
import type { Recorded } from "../core/model/event.ts";
import type { Seq } from "../core/model/ids.ts";
import type { SseMessage } from "../wire/sse-parser.ts";
import { DeliveredText } from "./delivered-text.ts";
import { JUMPS_MAX } from "./limits.ts";
import type { Connection } from "./transport/connection.ts";
import { Stream } from "./transport/stream.ts";

export interface Following {
  readonly path: string;
  /** Where to begin. */
  readonly after: Seq;
  readonly deltas: "with" | "without";
  readonly signal: AbortSignal | undefined;
  /** `whole`: every position of the log comes. `part`: only those of one run. */
  readonly log: "whole" | "part";
}

export type Page = readonly (Recorded | Delta | Gap)[];

/** Everything after a position, and then everything as it happens, until the stream is over or the signal aborts. */
export async function* follow(connection: Connection, following: Following): AsyncGenerator<Page, void> {
  const { path, after, deltas, signal, log } = following;
  const stream = new Stream(connection, { path, query: { after, deltas }, signal });
  const reader = new Reader(after, log, connection.where);
  for await (const messages of stream.pages()) {
    const page = reader.read(messages);
    stream.cursor = String(reader.cursor);
    if (reader.jumped) stream.restart();
    if (page.length > 0) yield page;
  }
}

class Reader {
  cursor: Seq;
  /** Whether the last page ended in a hole. */
  jumped = false;
  readonly #log: Following["log"];
  readonly #where: string;
  readonly #heard = new DeliveredText();
  #jumps = 0;

  constructor(after: Seq, log: Following["log"], where: string) {
    this.cursor = after;
    this.#log = log;
    this.#where = where;
  }

  /** What is new in these messages, up to the first hole. */
  read(messages: readonly SseMessage[]): Page {
    const page: (Recorded | Delta | Gap)[] = [];
    this.jumped = false;
    for (const message of messages) {
      const one = this.#one(message);
      if (this.jumped) break;
      if (one !== undefined) page.push(one);
    }
    return page;
  }

  #one({ event: name, data }: SseMessage): Recorded | Delta | Gap | undefined {
    const item = decode(data, this.#where);
    if (isDelta(item, name)) return this.#heard.hear(item);
    if (isGap(item, name)) return this.#gap(item);
    if (!isRecorded(item)) throw garbled(this.#where);
    // Heard before, by another connection.
    if (item.seq <= this.cursor) return undefined;
    if (this.#log === "whole" && item.seq !== this.cursor + 1) return this.#jump(item.seq);
    this.#move(item.seq);
    this.#heard.note(item);
    return item;
  }

  #gap(gap: Gap): Gap | undefined {
    if (gap.to <= this.cursor) return undefined;
    this.#move(gap.to);
    this.#heard.forget();
    return gap;
  }

  #move(seq: Seq): void {
    this.cursor = seq;
    this.#jumps = 0;
  }

  #jump(seq: Seq): undefined {
    this.#jumps += 1;
    this.jumped = true;
    if (this.#jumps <= JUMPS_MAX) return;
    throw new ControlError(
      "internal",
      `${this.#where} went from event ${this.cursor} to ${seq} of a log without holes, ${this.#jumps} times in a row.`,
      { hint: "Something between here and the server loses events. Nothing after the hole was handed on." },
    );
  }
}

function decode(data: string, where: string): Readonly<Record<string, unknown>> {
  let item: unknown;
  try {
    item = JSON.parse(data);
  } catch (cause) {
    throw garbled(where, cause);
  }
  if (typeof item !== "object" || item === null) throw garbled(where);
  return item as Readonly<Record<string, unknown>>;
}

const garbled = (where: string, cause?: unknown): ControlError =>
  new ControlError("internal", `${where} sent an event that is none.`, { cause });

type StreamItem = Readonly<Record<string, unknown>>;

const isRecorded = (item: StreamItem): item is StreamItem & Recorded =>
  typeof item.type === "string" && Number.isSafeInteger(item.seq) && typeof item.at === "number";

const isDelta = (item: StreamItem, name: string): item is StreamItem & Delta =>
  (name === "delta" && typeof item.text === "string" && typeof item.from === "number") ||
  name === "progress" ||
  name === "output";

const isGap = (item: StreamItem, name: string): item is StreamItem & Gap =>
  name === "gap" && Number.isSafeInteger(item.to);
