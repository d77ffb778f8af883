// Reads a stream by offset: one page of text from memory or disk, cut at character boundaries.
//
// Reading page after page, each from the end of the last, returns the same text as decoding everything at once, and
// every page advances, even through invalid bytes.
import { ControlError } from "../../core/errors.ts";
import type { Excerpt, OutputPage, OutputPageOptions, Stream } from "../../ports/spawner.ts";
import { boundaryAfter, boundaryAfterLoss, boundaryBefore, textOf } from "./character-boundary.ts";
import {
  CHARACTER_BYTES_MAX,
  EXCERPT_BYTES_DEFAULT,
  HEAD_BYTES,
  PAGE_BYTES_DEFAULT,
  PAGE_BYTES_MAX,
  TAIL_BYTES,
} from "./limits.ts";
import { plain } from "./plain-text.ts";
import type { Source } from "./source.ts";

const STREAMS: readonly unknown[] = ["stdout", "stderr", "all"] satisfies readonly Stream[];

/** How many earlier bytes decide whether a position is inside a character. */
const LOOK_BACK = CHARACTER_BYTES_MAX - 1;

/** Contiguous bytes. */
interface Stretch {
  readonly from: number;
  readonly bytes: Uint8Array;
  /** The following bytes are not kept, although the stream continues. */
  readonly broken: boolean;
}

/** The requested stream. Throws `invalid` if the name is unknown. */
export function streamOf(options: { readonly stream?: Stream }): Stream {
  const { stream = "all" } = options;
  if (STREAMS.includes(stream)) return stream;
  throw new ControlError("invalid", `\`stream\` must be stdout, stderr or all (got ${String(stream)}).`);
}

export async function readPage(source: Source, options: OutputPageOptions = {}): Promise<OutputPage> {
  const { stream } = source;
  const offset = wholeNumber("offset", options.offset ?? 0, 0);
  const bytesMax = bytesOf(options.bytesMax ?? PAGE_BYTES_DEFAULT, PAGE_BYTES_MAX);
  if (offset >= source.total) return { stream, from: offset, to: offset, text: "", missing: 0, end: source.ended };

  const { from: base, bytes, broken } = await stretchAt(source, offset, bytesMax);
  // Without the bytes before it, this position may be inside a character.
  const lost = base > offset || (base === offset && offset > 0);
  const wanted = Math.max(offset, base) - base;
  const begin = lost ? boundaryAfterLoss(bytes, wanted) : boundaryAfter(bytes, wanted);
  const stop = Math.min(begin + bytesMax, bytes.length);
  // A character that stays incomplete is shown as broken; one whose rest may still come is left for the next page.
  const last = stop === bytes.length && (broken || (source.ended && base + stop === source.total));
  const end = last ? stop : Math.max(begin, boundaryBefore(bytes, stop));
  return {
    stream,
    from: base + begin,
    to: base + end,
    text: readable(textOf(bytes.subarray(begin, end)), options.plain),
    missing: lost ? base + begin - offset : 0,
    end: source.ended && base + end === source.total,
  };
}

/** The bytes for a page from `offset`, with enough around them to find its first character. */
async function stretchAt(source: Source, offset: number, bytesMax: number): Promise<Stretch> {
  const lookBack = Math.min(LOOK_BACK, offset);
  const stretch = await gather(source, offset - lookBack, lookBack + bytesMax + LOOK_BACK);
  // The gap may begin exactly at `offset`: then the bytes before it are useless.
  return stretch.broken && stretch.from + stretch.bytes.length <= offset
    ? gather(source, offset, bytesMax + LOOK_BACK)
    : stretch;
}

/**
 * The first kept bytes from `from` on, up to the next gap. The tail in memory moves while the disk is read, so each
 * step checks again what is available.
 */
async function gather(source: Source, from: number, count: number): Promise<Stretch> {
  const pieces: Uint8Array[] = [];
  let start = from;
  let at = from;
  let to = Math.min(from + count, source.total);
  while (at < to) {
    const piece = source.memory(at, to) ?? (await source.disk(at, to));
    if (piece !== undefined) {
      pieces.push(piece);
      at += piece.length;
    } else if (pieces.length > 0) {
      return { from: start, bytes: Buffer.concat(pieces), broken: true };
    } else {
      start = source.next(at);
      at = start;
      to = Math.min(start + count, source.total);
    }
  }
  return { from: start, bytes: pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces), broken: false };
}

/** The beginning and end of a stream, from memory alone. */
export function excerptOf(source: Source, options: Omit<OutputPageOptions, "offset"> = {}): Excerpt {
  const { head, tail, omitted } = rawExcerpt(source, options.bytesMax);
  return { head: readable(head, options.plain), tail: readable(tail, options.plain), omitted };
}

/** Each page is converted separately, so a control sequence that is cut by a page end shows in part. */
const readable = (text: string, options: boolean | undefined): string => (options === true ? plain(text) : text);

function rawExcerpt(source: Source, bytesRequested: number | undefined): Excerpt {
  const bytesMax = bytesOf(bytesRequested ?? EXCERPT_BYTES_DEFAULT, HEAD_BYTES + TAIL_BYTES);
  const { total } = source;
  const whole = total <= bytesMax ? inMemory(source, 0, total) : undefined;
  if (whole?.length === total) return { head: textOf(whole.subarray(0, endOf(source, whole))), tail: "", omitted: 0 };

  const half = Math.floor(bytesMax / 2);
  const first = inMemory(source, 0, Math.min(total, half + LOOK_BACK));
  const head = first.subarray(0, boundaryBefore(first, Math.min(half, first.length)));
  const last = lastInMemory(source, Math.max(head.length, total - half));
  const tailFrom = boundaryAfterLoss(last, 0);
  const omitted = total - (last.length - tailFrom) - head.length;
  return { head: textOf(head), tail: textOf(last.subarray(tailFrom, endOf(source, last))), omitted };
}

/** The end of the text: an incomplete character is not shown while its rest may still come. */
const endOf = (source: Source, bytes: Uint8Array): number =>
  source.ended ? bytes.length : boundaryBefore(bytes, bytes.length);

/** All bytes from `from` to the end, or fewer if there is a gap. */
function lastInMemory(source: Source, from: number): Uint8Array {
  const bytes = inMemory(source, from, source.total);
  const to = from + bytes.length;
  return to === source.total ? bytes : inMemory(source, source.next(to), source.total);
}

function inMemory(source: Source, from: number, to: number): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (let at = from; at < to; ) {
    const piece = source.memory(at, to);
    if (piece === undefined) break;
    pieces.push(piece);
    at += piece.length;
  }
  return Buffer.concat(pieces);
}

const bytesOf = (requested: number, max: number): number =>
  Math.min(max, Math.max(CHARACTER_BYTES_MAX, wholeNumber("bytesMax", requested, 1)));

function wholeNumber(name: string, value: number, min: number): number {
  if (Number.isSafeInteger(value) && value >= min) return value;
  throw new ControlError("invalid", `\`${name}\` of a page must be a whole number of bytes, ${min} or more.`);
}
