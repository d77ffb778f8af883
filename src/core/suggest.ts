// Suggestions for mistyped words.

/** With more edits than this it is another word. */
const EDITS_MAX = 3;

/** The nearest of the known words, if it is near enough to be a typo. */
export function suggest(typed: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let fewest = Math.min(EDITS_MAX, Math.ceil(typed.length / 2)) + 1;
  for (const word of known) {
    // Words that differ this much in length are not near, and words from a model can be long.
    if (Math.abs(word.length - typed.length) > EDITS_MAX) continue;
    const edits = distance(typed.toLowerCase(), word.toLowerCase());
    if (edits < fewest) {
      best = word;
      fewest = edits;
    }
  }
  return best;
}

/** The number of characters that must be added, removed, replaced or swapped with a neighbour. */
function distance(from: string, to: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (same ? 0 : 1),
        swapped ? at(beforeLast, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    beforeLast = last;
    last = current;
  }
  return at(last, to.length);
}

const at = (row: readonly number[], column: number): number => row[column] ?? Number.POSITIVE_INFINITY;
