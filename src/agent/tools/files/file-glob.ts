// Glob patterns for paths: `*` and `?` within a name, `**` across names, `[a-z]`, `{a,b}`. Matching takes at most time
// proportional to the product of the two lengths, whatever the pattern: no regular expression is built from it.

import { invalid } from "./file-errors.ts";
import { GLOB_BRANCHES_MAX } from "./file-limits.ts";

/** Returns a predicate for paths with `/` between names. A pattern without `/` matches the last name, at any depth. */
export function globMatcher(pattern: string): (path: string) => boolean {
  const plain = pattern.replace(/^(\.\/)+/, "");
  const branches = expand(plain.includes("/") ? plain : `**/${plain}`).map((one) =>
    one.split("/").filter((name) => name !== ""),
  );
  return (path) => {
    const names = path.split("/");
    return branches.some((branch) => matches(branch, names, (segment) => segment === "**", matchesName));
  };
}

/** Expands `{a,b}` into two patterns, also when nested. An unmatched brace is a literal character. */
function expand(pattern: string): readonly string[] {
  const done: string[] = [];
  const left = [pattern];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const braces = /\{([^{}]*,[^{}]*)\}/.exec(next);
    if (braces === null) done.push(next);
    else {
      const [whole, inner = ""] = braces;
      const [before, after] = [next.slice(0, braces.index), next.slice(braces.index + whole.length)];
      left.push(...inner.split(",").map((one) => `${before}${one}${after}`));
    }
    if (done.length + left.length > GLOB_BRANCHES_MAX) {
      throw invalid(`The braces of the pattern expand to more than ${GLOB_BRANCHES_MAX} patterns.`);
    }
  }
  return done;
}

const matchesName = (pattern: string, name: string): boolean =>
  matches(pieces(pattern), [...name], (piece) => piece === "*", matchesCharacter);

/** Splits the pattern of one name into characters, `*`, `?` and `[…]` groups. */
const pieces = (pattern: string): readonly string[] => pattern.match(/\[!?\]?[^\]]*\]|./gsu) ?? [];

function matchesCharacter(piece: string, character: string): boolean {
  if (piece === "?") return true;
  if (piece.length < 3 || !piece.startsWith("[")) return piece === character;
  const isNot = piece.startsWith("[!");
  const inner = [...piece.slice(isNot ? 2 : 1, -1)];
  const isIn = inner.some((one, at) => {
    if (inner[at + 1] === "-" && at + 2 < inner.length) return one <= character && character <= (inner[at + 2] ?? "");
    return one === character;
  });
  return isIn !== isNot;
}

/**
 * Matches a pattern with stars against a list. On a mismatch the last star takes one more item. Earlier stars never
 * need to be tried again, so there is no backtracking.
 */
function matches<Piece, Item>(
  pattern: readonly Piece[],
  items: readonly Item[],
  isStar: (piece: Piece) => boolean,
  fits: (piece: Piece, item: Item) => boolean,
): boolean {
  let piece = 0;
  let item = 0;
  let star = -1;
  let taken = 0;
  while (item < items.length) {
    const [wanted, given] = [pattern[piece], items[item]];
    if (wanted !== undefined && isStar(wanted)) {
      star = piece;
      taken = item;
      piece += 1;
    } else if (wanted !== undefined && given !== undefined && fits(wanted, given)) {
      piece += 1;
      item += 1;
    } else if (star !== -1) {
      piece = star + 1;
      taken += 1;
      item = taken;
    } else return false;
  }
  return pattern.slice(piece).every(isStar);
}
