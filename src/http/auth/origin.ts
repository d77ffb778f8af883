// Where a page comes from that asks. Browsers say it, pages cannot; programs say nothing, and show a token instead.
import { ControlError } from "../../core/errors.ts";
import { HOST_CHARS_MAX } from "../limits.ts";
import { parseAuthority } from "./host.ts";

/**
 * Whether a browser would write an origin so: lower case, no default port, nothing behind it. There is one spelling of
 * each, so origins are compared as texts, and every other spelling is a trick.
 */
export function isOrigin(text: string): boolean {
  const [, authority = ""] = /^https?:\/\/([^/]+)$/.exec(text.slice(0, HOST_CHARS_MAX + 9)) ?? [];
  return parseAuthority(authority) !== undefined && URL.canParse(text) && new URL(text).origin === text;
}

/** The origins of a configuration. A `*` is not one, nor is `null`: every sandboxed frame calls itself that. */
export function configuredOrigins(texts: readonly string[]): ReadonlySet<string> {
  for (const text of texts) {
    if (isOrigin(text)) continue;
    throw new ControlError("invalid", `"${text.slice(0, HOST_CHARS_MAX)}" is not an origin this server can allow.`, {
      hint:
        'Give each origin exactly as a browser sends it: "https://console.example.com", in lower case, ' +
        "without a path or a slash at the end. There are no patterns.",
    });
  }
  return new Set(texts);
}

/** What the two headers of a browser say about a request to us, whose origin is `own`. */
export type Standing =
  /** No browser, or a page of our own. */
  | "own"
  /** A page that the configuration names. */
  | "configured"
  | "foreign-origin"
  | "foreign-site";

export function standingOf(
  headers: { readonly origin: string | undefined; readonly fetchSite: string | undefined },
  own: string,
  configured: ReadonlySet<string>,
): Standing {
  const { origin, fetchSite } = headers;
  if (origin !== undefined && configured.has(origin)) return "configured";
  if (origin !== undefined && origin !== own) return "foreign-origin";
  // A GET without an Origin: an image, a link, a script of another page. `none` is a person at the address bar.
  if (fetchSite !== undefined && fetchSite !== "none" && fetchSite !== "same-origin") return "foreign-site";
  return "own";
}
