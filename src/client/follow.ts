// The events of a session, of a run or of all sessions, read from a stream that may be cut, repeat itself or be faulty.
//
// Invariants
// 1. Each event is delivered once, in log order. A repeated event is dropped. A missing one is requested again; if it
//    never comes, reading fails instead of leaving a hole.
// 2. Delivered text is not delivered again.
import { ControlError } from "../core/errors.ts";
import type { Delta, Gap } from "../core/model/delta.ts";
import type { Recorded } from "../core/model/event.ts";
import type { Seq, TurnId } from "../core/model/ids.ts";
import type { AllEventsOptions, AllSessionsEvent } from "../ports/control.ts";
import type { SseMessage } from "../wire/sse-parser.ts";
import { JUMPS_MAX } from "./limits.ts";
import type { Connection } from "./transport/connection.ts";
import { Stream } from "./transport/stream.ts";

export interface Following {
  readonly path: string;
  /** The position to start after. */
  readonly after: Seq;
  readonly deltas: "with" | "without";
  readonly signal: AbortSignal | undefined;
  /** `whole`: every position of the log is expected. `part`: only those of one run. */
  readonly log: "whole" | "part";
}

export type Page = readonly (Recorded | Delta | Gap)[];

/** Everything after a position, then live events, until the stream is over or the signal aborts. */
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
  readonly #delivered = new DeliveredText();
  #jumps = 0;

  constructor(after: Seq, log: Following["log"], where: string) {
    this.cursor = after;
    this.#log = log;
    this.#where = where;
  }

  /** The new items of these messages, up to the first hole. */
  read(messages: readonly SseMessage[]): Page {
    const page: (Recorded | Delta | Gap)[] = [];
    this.jumped = false;
    for (const message of messages) {
      const item = this.#item(message);
      if (this.jumped) break;
      if (item !== undefined) page.push(item);
    }
    return page;
  }

  #item({ event: name, data }: SseMessage): Recorded | Delta | Gap | undefined {
    const item = decode(data, this.#where);
    if (isDelta(item, name)) return this.#delivered.newPart(item);
    if (isGap(item, name)) return this.#skip(item);
    if (!isRecorded(item)) throw garbled(this.#where);
    // Delivered before, by another connection.
    if (item.seq <= this.cursor) return undefined;
    if (this.#log === "whole" && item.seq !== this.cursor + 1) return this.#jump(item.seq);
    this.#move(item.seq);
    this.#delivered.note(item);
    return item;
  }

  #skip(gap: Gap): Gap | undefined {
    if (gap.to <= this.cursor) return undefined;
    this.#move(gap.to);
    this.#delivered.forget();
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
      { hint: "Something between here and the server loses events. Nothing after the hole was delivered." },
    );
  }
}

/** How much text of the live turns was delivered: after a reconnect, a server sends it again from the start. */
class DeliveredText {
  /** Delivered characters of answer text and of reasoning text, for each turn that has not ended. */
  readonly #turns = new Map<TurnId, { text: number; reasoning: number }>();

  /** The new part of a delta. Undefined: all of it was delivered before. */
  newPart(delta: Delta): Delta | undefined {
    if (delta.type !== "delta") return delta;
    const delivered = this.#turns.get(delta.turnId) ?? { text: 0, reasoning: 0 };
    this.#turns.set(delta.turnId, delivered);
    const kind = delta.kind ?? "text";
    const end = delta.from + delta.text.length;
    const known = delivered[kind] - delta.from;
    if (end <= delivered[kind]) return undefined;
    delivered[kind] = end;
    // Text that was dropped on the way is missing, so nothing is trimmed.
    return known <= 0 ? delta : { ...delta, from: delta.from + known, text: delta.text.slice(known) };
  }

  /** Resets a turn that has ended or is requested again. */
  note(event: Recorded): void {
    if (event.type === "turn.settled" || event.type === "turn.requested") this.#turns.delete(event.turnId);
    if (event.type === "run.recovered") this.#turns.clear();
  }

  /** Resets all turns after a gap, which may have contained anything. */
  forget(): void {
    this.#turns.clear();
  }
}

/** The events of all sessions after a cursor, or from now on. The starting position is reported once. */
export async function* allEvents(
  connection: Connection,
  { after, signal }: Pick<AllEventsOptions, "after" | "signal">,
): AsyncGenerator<AllSessionsEvent, void> {
  const stream = new Stream(connection, { path: "/v1/events", query: { after }, signal });
  for await (const messages of stream.pages()) {
    for (const message of messages) {
      const item = decodeAny(message, connection.where);
      const again = stream.connections > 1;
      const blind = again && stream.cursor === undefined && after === undefined;
      stream.cursor = item.cursor;
      // The connection was lost before the server sent its position, so the events in between cannot be requested.
      if (blind && item.type !== "missed") yield { type: "missed", cursor: item.cursor };
      if (item.type === "here" && again) continue;
      yield item;
    }
  }
}

function decodeAny({ event, data, lastEventId }: SseMessage, where: string): AllSessionsEvent {
  try {
    // The edge: the API defines what an event is.
    const item = JSON.parse(data) as Omit<Extract<AllSessionsEvent, { type: "event" }>, "type">;
    const cursor = item.cursor ?? lastEventId;
    if (event === "missed" || event === "here") return { type: event, cursor };
    return { type: "event", cursor, sessionId: item.sessionId, event: item.event };
  } catch (cause) {
    throw new ControlError("internal", `${where} sent an invalid event.`, { cause });
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
  new ControlError("internal", `${where} sent an invalid event.`, { cause });

type StreamItem = Readonly<Record<string, unknown>>;

const isRecorded = (item: StreamItem): item is StreamItem & Recorded =>
  typeof item.type === "string" && Number.isSafeInteger(item.seq) && typeof item.at === "number";

const isDelta = (item: StreamItem, name: string): item is StreamItem & Delta =>
  (name === "delta" && typeof item.text === "string" && typeof item.from === "number") ||
  name === "progress" ||
  name === "output";

const isGap = (item: StreamItem, name: string): item is StreamItem & Gap =>
  name === "gap" && Number.isSafeInteger(item.to);
