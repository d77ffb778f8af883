// Counts line ends at memory speed, because every byte that a child writes passes through here.

const LINE_END = 0x0a;

/** Below this, the setup for four bytes at a time costs more than it saves. */
const WORDWISE_BYTES_MIN = 128;

/** A lane of the sum is one byte: after this many words it could overflow. */
const WORDS_PER_SUM = 255;

/**
 * `indexOf` would be faster where line ends are rare and ten times slower where they are dense; this takes the same
 * time for both, so no child can slow it down.
 */
export function countLineEnds(bytes: Uint8Array): number {
  if (bytes.length < WORDWISE_BYTES_MIN) return countBytewise(bytes, 0, bytes.length);
  const skipped = (4 - (bytes.byteOffset % 4)) % 4;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + skipped, (bytes.length - skipped) >>> 2);
  const rest = skipped + words.length * 4;
  return countBytewise(bytes, 0, skipped) + countWordwise(words) + countBytewise(bytes, rest, bytes.length);
}

function countBytewise(bytes: Uint8Array, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at += 1) if (bytes[at] === LINE_END) count += 1;
  return count;
}

/** The exclusive or turns a byte equal to the line end into 0, and the steps after it into a lane of 1. */
function countWordwise(words: Int32Array): number {
  let count = 0;
  for (let start = 0; start < words.length; start += WORDS_PER_SUM) {
    const end = Math.min(start + WORDS_PER_SUM, words.length);
    let lanes = 0;
    for (let at = start; at < end; at += 1) {
      const word = (words[at] as number) ^ 0x0a0a0a0a;
      lanes = (lanes + (~(((word & 0x7f7f7f7f) + 0x7f7f7f7f) | word | 0x7f7f7f7f) >>> 7)) | 0;
    }
    count += (lanes & 0xff) + ((lanes >>> 8) & 0xff) + ((lanes >>> 16) & 0xff) + (lanes >>> 24);
  }
  return count;
}
