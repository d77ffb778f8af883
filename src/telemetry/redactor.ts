// Removes secrets from text: known secrets in all their encodings, and everything that looks like a token.
//
// Invariants
// 1. It never throws. A text that cannot be searched is replaced as a whole.
// 2. It takes time linear in the length of the text, whatever the text contains.
// 3. Redaction is idempotent.

import { REDACTED, withoutTokens } from "../core/token-patterns.ts";
import { SECRET_CHARS_MAX, SECRET_CHARS_MIN, SECRETS_MAX } from "./limits.ts";
import { secretForms } from "./secret-forms.ts";

/** Returns the text without its secrets. */
export type Redact = (text: string) => string;

export interface Redactor extends Redact {
  /** Adds a secret that is redacted from now on. */
  add(secret: string): Added;
}

export type Added =
  | { readonly kind: "added" }
  /** The secret is not redacted. */
  | { readonly kind: "ignored"; readonly because: string };

/** Creates a redactor. Secrets that it cannot search for are skipped; `add` returns the reason for each. */
export function redactor(secrets: Iterable<string> = []): Redactor {
  const known = new Set<string>();
  /** Compiled on the next use: secrets are often added one after the other. */
  let search: Redact | undefined;

  const redact: Redact = (text) => {
    try {
      search ??= searchFor(known);
      return withoutTokens(search(text));
    } catch {
      return REDACTED;
    }
  };

  const add = (secret: string): Added => {
    // A secret that was read from a file may end in a line break that is not part of it.
    const bare = secret.trim();
    const because = whyNot(bare, known);
    if (because !== undefined) return { kind: "ignored", because };
    known.add(bare);
    search = undefined;
    return { kind: "added" };
  };

  for (const secret of secrets) add(secret);
  return Object.assign(redact, { add });
}

function whyNot(secret: string, known: ReadonlySet<string>): string | undefined {
  if (known.has(secret)) return undefined;
  if (secret.length < SECRET_CHARS_MIN) {
    return `It has fewer than ${SECRET_CHARS_MIN} characters, so it would match ordinary texts by chance.`;
  }
  if (REDACTED.includes(secret)) return "It is part of the placeholder for secrets.";
  if (secret.length > SECRET_CHARS_MAX) return `It has more than ${SECRET_CHARS_MAX} characters.`;
  if (known.size >= SECRETS_MAX) return `There are ${SECRETS_MAX} secrets already.`;
  return undefined;
}

function searchFor(secrets: ReadonlySet<string>): Redact {
  if (secrets.size === 0) return (text) => text;
  const forms = [...secrets].map(secretForms);
  const exact = anyOf(forms.flatMap((one) => one.exact));
  // The last character may encode bits of the secret together with bits of the following text.
  const base64 = new RegExp(`${anyOf(forms.flatMap((one) => one.base64)).source}[A-Za-z0-9+/_-]?={0,2}`, "g");
  return (text) => text.replace(exact, REDACTED).replace(base64, REDACTED);
}

/** Alternatives, longest first: if one secret is the prefix of another, all of the longer one is removed. */
function anyOf(texts: readonly string[]): RegExp {
  const sorted = [...new Set(texts)].toSorted((one, other) => other.length - one.length);
  return new RegExp(`(?:${sorted.map(literal).join("|")})`, "g");
}

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
