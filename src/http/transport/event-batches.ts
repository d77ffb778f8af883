// Converts pages of a log into pieces of a stream. Events of one page are sent together, in pieces of bounded size.
//
// Invariants
// 1. The next page is requested when the last piece of this one was read: a reader holds one page at most.

import type { Seq } from "../../core/model/ids.ts";
import type { RunRow } from "../../core/model/rows.ts";
import type { AllSessionsEvent } from "../../ports/control.ts";
import type { OutputPage } from "../../ports/spawner.ts";
import { PIECE_CHARS_MAX } from "../limits.ts";
import type { EventTexts, SentText } from "./event-text.ts";

/** The log of a session. It has no end, so if its pages end, the stream was cut. */
export async function* sessionBatches(
  pages: AsyncIterable<readonly SentText[]>,
  texts: EventTexts,
): AsyncGenerator<string, "cut"> {
  for await (const page of pages) yield* pieces(page, texts);
  return "cut";
}

/** The events of one run, up to its outcome, or up to a gap that contains the outcome. */
export async function* runBatches(
  pages: AsyncIterable<readonly SentText[]>,
  texts: EventTexts,
  run: Pick<RunRow, "id"> & { readonly settledAt: () => Promise<Seq | undefined> },
): AsyncGenerator<string, "complete" | "cut"> {
  for await (const page of pages) {
    const own = page.filter((event) => event.type === "gap" || ("runId" in event && event.runId === run.id));
    const end = own.findIndex((event) => event.type === "run.settled");
    const kept = end === -1 ? own : own.slice(0, end + 1);
    yield* pieces(kept, texts);
    if (end !== -1) return "complete";
    const gap = kept.findLast((event) => event.type === "gap");
    if (gap !== undefined && ((await run.settledAt()) ?? Number.POSITIVE_INFINITY) <= gap.to) return "complete";
  }
  return "cut";
}

export async function* allBatches(
  feed: AsyncIterable<AllSessionsEvent>,
  texts: EventTexts,
): AsyncGenerator<string, "cut"> {
  for await (const event of feed) yield* slices(texts.feedEvent(event));
  return "cut";
}

export async function* outputBatches(
  pages: AsyncIterable<OutputPage>,
  texts: EventTexts,
): AsyncGenerator<string, "complete" | "cut"> {
  for await (const page of pages) {
    yield* slices(texts.page(page));
    if (page.end) return "complete";
  }
  return "cut";
}

/**
 * Joins short frames and slices long ones, so that a connection never buffers more than one piece of unread data.
 * Frames are encoded when they are sent, not a page at a time.
 */
function* pieces(page: readonly SentText[], texts: EventTexts): Generator<string, void> {
  let piece = "";
  for (const event of page) {
    const frame = texts.of(event);
    if (piece !== "" && piece.length + frame.length > PIECE_CHARS_MAX) {
      yield piece;
      piece = "";
    }
    if (frame.length > PIECE_CHARS_MAX) yield* slices(frame);
    else piece += frame;
  }
  if (piece !== "") yield piece;
}

/** Slices a frame, but never between the two halves of a surrogate pair. */
export function* slices(frame: string): Generator<string, void> {
  for (let from = 0; from < frame.length; ) {
    const to = characterEnd(frame, from + PIECE_CHARS_MAX);
    yield frame.slice(from, to);
    from = to;
  }
}

/** Returns `end`, or one less if `end` is inside a surrogate pair. */
export const characterEnd = (text: string, end: number): number =>
  isLowSurrogate(text.charCodeAt(end)) ? end - 1 : end;

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;
