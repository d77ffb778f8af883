// Takes secrets out of text: those we know, in every form they take, and whatever looks like a token.
//
// Invariants
// 1. Never throws. A text that cannot be looked through is not shown at all.
// 2. Takes time in proportion to the text, whatever is in it.
// 3. What was redacted stays so: a second time changes nothing.

import { REDACTED, withoutTokens } from "../core/token-patterns.ts";
import { SECRET_CHARS_MAX, SECRET_CHARS_MIN, SECRETS_MAX } from "./limits.ts";
import { secretForms } from "./secret-forms.ts";

/** The text, without its secrets. */
export type Redact = (text: string) => string;

export interface Redactor extends Redact {
  /** From now on this is a secret too. */
  add(secret: string): Added;
}

export type Added =
  | { readonly kind: "added" }
  /** It is not looked for, and why. */
  | { readonly kind: "ignored"; readonly because: string };

/** Secrets that cannot be looked for are left out; `add` says why, one at a time. */
export function redactor(secrets: Iterable<string> = []): Redactor {
  const known = new Set<string>();
  /** Made when it is next needed: secrets often come one after the other. */
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
    // A secret that was read from a file ends in a line break that is not part of it.
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
    return `It has fewer than ${SECRET_CHARS_MIN} characters: it would be found by chance in texts that are no secret.`;
  }
  if (REDACTED.includes(secret)) return "It is a part of what stands in place of secrets.";
  if (secret.length > SECRET_CHARS_MAX) return `It has more than ${SECRET_CHARS_MAX} characters.`;
  if (known.size >= SECRETS_MAX) return `There are ${SECRETS_MAX} secrets already.`;
  return undefined;
}

function searchFor(secrets: ReadonlySet<string>): Redact {
  if (secrets.size === 0) return (text) => text;
  const forms = [...secrets].map(secretForms);
  const exact = anyOf(forms.flatMap((one) => one.exact));
  // The last character may carry bits of the secret, and of what came behind it.
  const base64 = new RegExp(`${anyOf(forms.flatMap((one) => one.base64)).source}[A-Za-z0-9+/_-]?={0,2}`, "g");
  return (text) => text.replace(exact, REDACTED).replace(base64, REDACTED);
}

/** The longest first: where one secret begins with another, all of it goes. */
function anyOf(texts: readonly string[]): RegExp {
  const sorted = [...new Set(texts)].toSorted((one, other) => other.length - one.length);
  return new RegExp(`(?:${sorted.map(literal).join("|")})`, "g");
}

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
