import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { configuredOrigins, isOrigin, pageSource } from "./origin.ts";

const OWN = "http://127.0.0.1:7777";
const CONFIGURED = configuredOrigins(["https://console.example.com", "http://localhost:5173"]);

const source = (origin: string | undefined, fetchSite?: string) => pageSource({ origin, fetchSite }, OWN, CONFIGURED);

describe("the source of a request", () => {
  test("is `own` for a program, which sends no origin, and for the server's own page", () => {
    expect(source(undefined)).toBe("own");
    expect(source(OWN)).toBe("own");
    expect(source(OWN, "same-origin")).toBe("own");
    expect(source(undefined, "none")).toBe("own");
  });

  test("is `configured` for a configured origin, even if its browser reports another site", () => {
    expect(source("https://console.example.com")).toBe("configured");
    expect(source("https://console.example.com", "cross-site")).toBe("configured");
    expect(source("http://localhost:5173", "same-site")).toBe("configured");
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
  ])("is foreign for the origin %j", (origin) => {
    expect(source(origin)).toBe("foreign-origin");
    expect(source(origin, "same-origin")).toBe("foreign-origin");
  });

  test.each(["cross-site", "same-site", "", "SAME-ORIGIN", "same-origin, cross-site", "anything"])(
    "is foreign for Sec-Fetch-Site %j, even without an Origin",
    (fetchSite) => {
      expect(source(undefined, fetchSite)).toBe("foreign-site");
      expect(source(OWN, fetchSite)).toBe("foreign-site");
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
  ])("%j is refused, because no browser sends it or every sandboxed frame does", (origin) => {
    expect(() => configuredOrigins([origin])).toThrow(/not an origin/);
  });

  test("of 10,000 random texts are refused, or have nothing but a scheme, a name and a port", () => {
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
