// Checks the origin of web pages. Browsers set `Origin` and `Sec-Fetch-Site`, and pages cannot change them. Other
// programs send neither, and authenticate with a token.
import { ControlError } from "../../core/errors.ts";
import { HOST_CHARS_MAX } from "../limits.ts";
import { parseAuthority } from "./host.ts";

/**
 * Whether this is an origin exactly as browsers send it: lower case, no default port, no path. Each origin has one
 * spelling, so origins are compared as strings.
 */
export function isOrigin(text: string): boolean {
  const [, authority = ""] = /^https?:\/\/([^/]+)$/.exec(text.slice(0, HOST_CHARS_MAX + 9)) ?? [];
  return parseAuthority(authority) !== undefined && URL.canParse(text) && new URL(text).origin === text;
}

/** Checks the configured origins. `*` is not an origin, nor is `null`, which every sandboxed frame sends. */
export function configuredOrigins(texts: readonly string[]): ReadonlySet<string> {
  for (const text of texts) {
    if (isOrigin(text)) continue;
    throw new ControlError("invalid", `"${text.slice(0, HOST_CHARS_MAX)}" is not an origin this server can allow.`, {
      hint:
        'Give each origin exactly as a browser sends it: "https://console.example.com", in lower case, ' +
        "without a path or a trailing slash. Patterns are not supported.",
    });
  }
  return new Set(texts);
}

/** Where a request comes from. */
export type PageSource =
  /** A page of this server, or not a browser. */
  | "own"
  /** A page of a configured origin. */
  | "configured"
  | "foreign-origin"
  | "foreign-site";

/** Determines the source of a request to the origin `own` from the two headers that browsers send. */
export function pageSource(
  headers: { readonly origin: string | undefined; readonly fetchSite: string | undefined },
  own: string,
  configured: ReadonlySet<string>,
): PageSource {
  const { origin, fetchSite } = headers;
  if (origin !== undefined && configured.has(origin)) return "configured";
  if (origin !== undefined && origin !== own) return "foreign-origin";
  // A GET without an Origin: an image, a link or a script of another page. `none` means typed into the address bar.
  if (fetchSite !== undefined && fetchSite !== "none" && fetchSite !== "same-origin") return "foreign-site";
  return "own";
}
