// Pages of a log as pieces of a stream: what comes together goes out together, within a bound.
//
// Invariants
// 1. The next page is asked for when the last piece of this one has been taken: a reader holds one page, not more.

import type { Seq } from "../../core/model/ids.ts";
import type { RunRow } from "../../core/model/rows.ts";
import type { AllSessionsEvent } from "../../ports/control.ts";
import type { OutputPage } from "../../ports/spawner.ts";
import { PIECE_CHARS_MAX } from "../limits.ts";
import type { EventTexts, SentText } from "./event-text.ts";

/** The log of a session. It has no end, so when its pages end it was cut. */
export async function* sessionBatches(
  pages: AsyncIterable<readonly SentText[]>,
  texts: EventTexts,
): AsyncGenerator<string, "cut"> {
  for await (const page of pages) yield* pieces(page, texts);
  return "cut";
}

/** What of it is about one run, to its outcome; or to the gap in which that is lost. */
export async function* runBatches(
  pages: AsyncIterable<readonly SentText[]>,
  texts: EventTexts,
  run: Pick<RunRow, "id"> & { readonly settledAt: () => Promise<Seq | undefined> },
): AsyncGenerator<string, "complete" | "cut"> {
  for await (const page of pages) {
    const own = page.filter((heard) => heard.type === "gap" || ("runId" in heard && heard.runId === run.id));
    const end = own.findIndex((heard) => heard.type === "run.settled");
    const kept = end === -1 ? own : own.slice(0, end + 1);
    yield* pieces(kept, texts);
    if (end !== -1) return "complete";
    const gap = kept.findLast((heard) => heard.type === "gap");
    if (gap !== undefined && ((await run.settledAt()) ?? Number.POSITIVE_INFINITY) <= gap.to) return "complete";
  }
  return "cut";
}

export async function* allBatches(
  told: AsyncIterable<AllSessionsEvent>,
  texts: EventTexts,
): AsyncGenerator<string, "cut"> {
  for await (const one of told) yield* slices(texts.told(one));
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
 * Frames joined as long as they are short together, and one that is long by itself in slices: what has been handed to a
 * connection and not been taken is never more than a piece. Written when its turn comes, not a page at a time.
 */
function* pieces(page: readonly SentText[], texts: EventTexts): Generator<string, void> {
  let piece = "";
  for (const heard of page) {
    const frame = texts.of(heard);
    if (piece !== "" && piece.length + frame.length > PIECE_CHARS_MAX) {
      yield piece;
      piece = "";
    }
    if (frame.length > PIECE_CHARS_MAX) yield* slices(frame);
    else piece += frame;
  }
  if (piece !== "") yield piece;
}

/** Never between the two halves of one character. */
export function* slices(frame: string): Generator<string, void> {
  for (let from = 0; from < frame.length; ) {
    const to = characterEnd(frame, from + PIECE_CHARS_MAX);
    yield frame.slice(from, to);
    from = to;
  }
}

/** Here, or one before if this is inside a character. */
export const characterEnd = (text: string, end: number): number =>
  isLowSurrogate(text.charCodeAt(end)) ? end - 1 : end;

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit < 0xe000;
