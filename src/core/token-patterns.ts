// Patterns of the tokens and keys of well-known services, for redaction.
//
// Invariants
// 1. Every pattern takes linear time. Where a pattern can fail after an unbounded run of characters, it can begin only
//    where such a run begins, so no character is read from more than one beginning.
// 2. No match ends in the middle of a JSON escape, so a line of JSON stays valid.

interface TokenPattern {
  /** A substring of every match. Searching it is much cheaper than the pattern. */
  readonly mark: string | undefined;
  readonly pattern: RegExp;
  readonly instead: string;
}

export const REDACTED = "[redacted]";

/**
 * Where a token may begin: not inside a word. A letter that ends an escape is not part of a word: in a JSON line the
 * text after a line break follows an `n`, and in a URL the text after `%3D` follows a `D`.
 */
const ESCAPE = String.raw`(?<=\\[bfnrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2})`;
const BEGIN = `(?:(?<![A-Za-z0-9])|${ESCAPE})`;
/** The same for tokens whose characters include word separators. */
const BEGIN_RUN = `(?:(?<![A-Za-z0-9_-])|${ESCAPE})`;

const token = (mark: string, source: string): TokenPattern => ({
  mark,
  pattern: new RegExp(source, "g"),
  instead: REDACTED,
});

/** The end of the body may have been cut off: anything that looks like a body is removed. */
const PRIVATE_KEY = [
  "-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
  String.raw`(?:[A-Za-z0-9+/=\s:,.()]|\\[nrtu/\\]|-(?!----))*`,
  "(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
].join("");

const PATTERNS: readonly TokenPattern[] = [
  token("PRIVATE KEY", PRIVATE_KEY),
  // Before the others: a bearer token may have any form.
  { mark: undefined, pattern: /(bearer(?:\s|%20|\+){1,8})[A-Za-z0-9._~+/=-]{8,}/gi, instead: `$1${REDACTED}` },
  token("sk-", `${BEGIN}sk-[A-Za-z0-9_-]{16,}`),
  token("gh", `${BEGIN}gh[pousr]_[A-Za-z0-9]{16,}`),
  token("github_pat_", `${BEGIN}github_pat_[A-Za-z0-9_]{16,}`),
  token("IA", `${BEGIN}(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])`),
  token("xox", `${BEGIN}xox[a-z]-[A-Za-z0-9-]{10,}`),
  token("xapp-", `${BEGIN}xapp-[A-Za-z0-9-]{10,}`),
  token("eyJ", String.raw`${BEGIN_RUN}eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*`),
];

/** The text with everything that looks like a token or a private key replaced. */
export function withoutTokens(text: string): string {
  let left = text;
  for (const { mark, pattern, instead } of PATTERNS) {
    if (mark === undefined || left.includes(mark)) left = left.replace(pattern, instead);
  }
  return left;
}
