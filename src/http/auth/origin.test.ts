import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { configuredOrigins, isOrigin, standingOf } from "./origin.ts";

const OWN = "http://127.0.0.1:7777";
const CONFIGURED = configuredOrigins(["https://console.example.com", "http://localhost:5173"]);

const standing = (origin: string | undefined, fetchSite?: string) => standingOf({ origin, fetchSite }, OWN, CONFIGURED);

describe("where a page comes from", () => {
  test("a program says nothing, and our own page says our own origin", () => {
    expect(standing(undefined)).toBe("own");
    expect(standing(OWN)).toBe("own");
    expect(standing(OWN, "same-origin")).toBe("own");
    expect(standing(undefined, "none")).toBe("own");
  });

  test("a configured page may ask, although its browser calls it another site", () => {
    expect(standing("https://console.example.com")).toBe("configured");
    expect(standing("https://console.example.com", "cross-site")).toBe("configured");
    expect(standing("http://localhost:5173", "same-site")).toBe("configured");
  });

  test.each([
    ...["null", "", "*", "https://evil.com", "http://127.0.0.1", "http://127.0.0.1:77777", "http://127.0.0.1:7778"],
    ...["https://127.0.0.1:7777", "http://localhost:7777", "http://127.0.0.1:7777.evil.com", "HTTP://127.0.0.1:7777"],
    ...[
      "http://127.0.0.1:7777/",
      "http://127.0.0.1.:7777",
      "http://user@127.0.0.1:7777",
      "http://127.0.0.1:7777@evil.com",
    ],
    ...["http://console.example.com", "https://console.example.com.", "https://console.example.com:443"],
    ...["https://console.example.com.evil.com", "https://evilconsole.example.com", "https://CONSOLE.example.com"],
    ...["https://console.example.com, http://127.0.0.1:7777", "http://127.0.0.1:7777, http://127.0.0.1:7777"],
    ...[" http://127.0.0.1:7777", "http://127.0.0.1:7777 ", "file://", "chrome-extension://abc"],
  ])("%j is foreign", (origin) => {
    expect(standing(origin)).toBe("foreign-origin");
    expect(standing(origin, "same-origin")).toBe("foreign-origin");
  });

  test.each(["cross-site", "same-site", "", "SAME-ORIGIN", "same-origin, cross-site", "anything"])(
    "a request that %j has caused is foreign, even without an Origin",
    (fetchSite) => {
      expect(standing(undefined, fetchSite)).toBe("foreign-site");
      expect(standing(OWN, fetchSite)).toBe("foreign-site");
    },
  );
});

describe("configured origins", () => {
  test.each([
    ...["*", "null", "https://*.example.com", "https://a.example.com/", "https://a.example.com/path", "a.example.com"],
    ...[
      "https://A.example.com",
      "https://a.example.com:443",
      "https://a.example.com.",
      "https://u:p@a.example.com",
      "",
    ],
  ])("%j is refused, because no browser sends it or everybody does", (origin) => {
    expect(() => configuredOrigins([origin])).toThrow(/not an origin/);
  });

  test("10,000 inventions: none breaks it, and what passes has nothing but a scheme, a name and a port", () => {
    const piece = fc.constantFrom(
      "http",
      "https",
      "://",
      "localhost",
      ":",
      "80",
      "443",
      "/",
      "@",
      ".",
      "null",
      "A",
      "[::1]",
    );
    const text = fc.oneof(
      fc.string({ maxLength: 40 }),
      fc.array(piece, { maxLength: 8 }).map((all) => all.join("")),
    );
    fc.assert(
      fc.property(text, (input) => {
        if (isOrigin(input)) expect(input).toMatch(/^https?:\/\/([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d+)?$/);
      }),
      { numRuns: 10_000 },
    );
  });
});
