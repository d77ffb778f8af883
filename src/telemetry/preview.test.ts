import { describe, expect, test } from "vitest";
import { PREVIEW_VALUES_MAX, TEXT_CHARS_MAX, TEXT_CHARS_READ_MAX } from "./limits.ts";
import { preview, previewText, redactJson } from "./preview.ts";
import { redactor } from "./redactor.ts";

const SECRET = "canary-1234-canary";
const redact = redactor([SECRET, "1234567890"]);

describe("JSON without secrets", () => {
  test("G35: secrets are redacted in texts, keys and numbers, at any depth", () => {
    const value = { a: [{ b: `x ${SECRET}` }], [SECRET]: true, n: 1234567890, m: 12, none: null };
    expect(redactJson(redact, value)).toEqual({
      a: [{ b: "x [redacted]" }],
      "[redacted]": true,
      n: "[redacted]",
      m: 12,
      none: null,
    });
  });

  test("a key called __proto__ is a key like any other", { meta: { id: "json/proto-key-redacted-as-data" } }, () => {
    const safe = redactJson(redact, JSON.parse('{"__proto__":{"polluted":1},"a":2}'));
    expect(JSON.stringify(safe)).toBe('{"__proto__":{"polluted":1},"a":2}');
    expect(Object.getPrototypeOf(safe)).toBe(Object.prototype);
  });

  test("values that are nested too deeply or too many are omitted and marked", () => {
    let deep: unknown = SECRET;
    for (let depth = 0; depth < 100_000; depth += 1) deep = [deep];
    expect(JSON.stringify(preview(deep, { redact }))).toContain("[nested too deeply]");
    const long = redactJson(
      redact,
      Array.from({ length: 50_000 }, (_, index) => index),
    );
    expect(long).toHaveLength(PREVIEW_VALUES_MAX);
    expect(JSON.stringify(long)).toMatch(/\[and \d+ more\]"\]$/);
    const wide = redactJson(redact, Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [index, 1])));
    expect(Object.keys(wide ?? {}).length).toBeLessThanOrEqual(PREVIEW_VALUES_MAX);
  });

  test("values that JSON cannot represent, or that cannot be read, are described by a text", () => {
    const circle: Record<string, unknown> = {};
    circle.self = circle;
    const trap = Object.defineProperty({}, "a", {
      enumerable: true,
      get() {
        throw new Error("no");
      },
    });
    expect(
      preview({ big: 12n, not: Number.NaN, f: () => 1, u: undefined, trap, bytes: new Uint8Array(3) }, { redact }),
    ).toEqual({ big: "12", not: "NaN", f: "[a function]", trap: "[unreadable]", bytes: "[3 bytes]" });
    expect(JSON.stringify(preview(circle, { redact }))).toContain("[nested too deeply]");
    expect(preview(new URL("https://example.com/a"), { redact })).toBe("https://example.com/a");
  });
});

describe("a text", () => {
  test("G35: is redacted before it is truncated, so that no part of a secret is left at the end", () => {
    for (let from = TEXT_CHARS_MAX - SECRET.length - 1; from <= TEXT_CHARS_MAX; from += 1) {
      const safe = previewText(`${"x".repeat(from)}${SECRET}${"y".repeat(100)}`, redact);
      expect(safe).not.toContain("cana");
      expect(safe).toContain("more characters]");
    }
  });

  test("that is too long to be redacted is replaced by its length", () => {
    expect(previewText("x".repeat(TEXT_CHARS_READ_MAX + 1), redact)).toBe("[a text of 1048577 characters]");
  });

  test("is not truncated inside a character", () => {
    expect(previewText("😀😀", redact, 3).isWellFormed()).toBe(true);
  });
});
