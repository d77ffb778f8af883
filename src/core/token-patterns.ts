// What the tokens and keys of well-known services look like, wherever they turn up.
//
// Invariants
// 1. Every pattern takes time in proportion to the text. Where a pattern can fail after an unbounded run of characters,
//    it can begin only where such a run begins, so no character is looked at from more than one beginning.
// 2. Nothing that is matched ends in the middle of a JSON escape, so a line of JSON stays one.

interface TokenPattern {
  /** Found in every text that matches. Looking for it is much cheaper than the pattern. */
  readonly mark: string | undefined;
  readonly pattern: RegExp;
  readonly instead: string;
}

export const REDACTED = "[redacted]";

/**
 * Where a token may begin: not inside a word. A letter that is the end of an escape is no word: in a JSON line the
 * text after a line break follows an `n`, and in a URL what follows `%3D` follows a `D`.
 */
const ESCAPE = String.raw`(?<=\\[bfnrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})`;
const BEGIN = `(?:(?<![A-Za-z0-9])|${ESCAPE})`;
/** The same for tokens of characters that themselves are marks between words. */
const BEGIN_RUN = `(?:(?<![A-Za-z0-9_-])|${ESCAPE})`;

const token = (mark: string, source: string): TokenPattern => ({
  mark,
  pattern: new RegExp(source, "g"),
  instead: REDACTED,
});

/** The body may be missing its end, because somebody has cut it: what looks like a body goes all the same. */
const PRIVATE_KEY = [
  "-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
  String.raw`(?:[A-Za-z0-9+/=\s:,.()]|\\[nrtu/\\]|-(?!----))*`,
  "(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
].join("");

const PATTERNS: readonly TokenPattern[] = [
  token("PRIVATE KEY", PRIVATE_KEY),
  // Before the others: a token that is borne may look like anything.
  { mark: undefined, pattern: /(bearer(?:\s|%20|\+){1,8})[A-Za-z0-9._~+/=-]{8,}/gi, instead: `$1${REDACTED}` },
  token("sk-", `${BEGIN}sk-[A-Za-z0-9_-]{16,}`),
  token("gh", `${BEGIN}gh[pousr]_[A-Za-z0-9]{16,}`),
  token("github_pat_", `${BEGIN}github_pat_[A-Za-z0-9_]{16,}`),
  token("IA", `${BEGIN}(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])`),
  token("xox", `${BEGIN}xox[a-z]-[A-Za-z0-9-]{10,}`),
  token("xapp-", `${BEGIN}xapp-[A-Za-z0-9-]{10,}`),
  token("eyJ", String.raw`${BEGIN_RUN}eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*`),
];

/** The text without anything that looks like a token or a private key. */
export function withoutTokens(text: string): string {
  let left = text;
  for (const { mark, pattern, instead } of PATTERNS) {
    if (mark === undefined || left.includes(mark)) left = left.replace(pattern, instead);
  }
  return left;
}
