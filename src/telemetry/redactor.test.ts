import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SECRET_CHARS_MAX, SECRETS_MAX } from "./limits.ts";
import { redactor } from "./redactor.ts";

const CANARY = 'pä"ss/word+\\ 1~(x)';

const base64 = (text: string): string => Buffer.from(text, "utf8").toString("base64");

describe("a known secret", () => {
  const redact = redactor([CANARY]);

  const forms: readonly (readonly [name: string, text: string])[] = [
    ["as it is", CANARY],
    ["in JSON", JSON.stringify({ key: CANARY })],
    ["in JSON inside JSON", JSON.stringify(JSON.stringify({ key: CANARY }))],
    ["in JSON with escaped slashes", JSON.stringify(CANARY).replaceAll("/", "\\/")],
    ["in JSON of nothing but ASCII", JSON.stringify(CANARY).replace("ä", "\\u00e4")],
    ["in a URL", `https://example.com/?a=${encodeURIComponent(CANARY)}&b=1`],
    ["in a URL with small digits", encodeURIComponent(CANARY).toLowerCase()],
    ["in a form", new URLSearchParams({ a: CANARY }).toString()],
    ["in base64", base64(CANARY)],
    ["in base64 for URLs", Buffer.from(CANARY, "utf8").toString("base64url")],
    ["in base64 behind one byte", base64(`:${CANARY}`)],
    ["in base64 behind two bytes", base64(`u:${CANARY}`)],
    ["in base64 between other bytes", base64(`user:${CANARY} and more`)],
  ];

  test.each(forms)("G35: is redacted %s", (_, text) => {
    const safe = redact(`before ${text} after`);
    expect(safe).toContain("[redacted]");
    expect(safe).toMatch(/^before .* after$/);
    expect(leaks(safe, CANARY)).toEqual([]);
  });

  test("is redacted everywhere, however often it appears", () => {
    expect(redact(`${CANARY}${CANARY},${CANARY}`)).toBe("[redacted][redacted],[redacted]");
  });

  test("does not change a text without it", () => {
    const text = 'Nothing to see: {"a":[1,2,3],"b":"c"} https://example.com/a%20b dXNlcg==';
    expect(redact(text)).toBe(text);
  });

  test("that begins with another secret is redacted as a whole", () => {
    expect(redactor(["abcdefgh", "abcdefghij"])("x abcdefghij y")).toBe("x [redacted] y");
  });

  test("G35: any secret is redacted in any surrounding text, in every encoding", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 8, maxLength: 60, unit: "binary" }).filter((one) => one.trim().length >= 8),
        fc.string({ maxLength: 20 }),
        (secret, around) => {
          const redacted = redactor([secret]);
          const bare = secret.trim();
          fc.pre(!"[redacted]".includes(bare));
          for (const form of [bare, JSON.stringify(bare), encodeURIComponent(bare), base64(`${around}${bare}`)]) {
            expect(redacted(`${around}|${form}|${around}`)).toContain("[redacted]");
          }
        },
      ),
    );
  });
});

describe("a secret", () => {
  test("can be added later, with the line break at the end of its file", () => {
    const redact = redactor();
    expect(redact("late-secret")).toBe("late-secret");
    expect(redact.add("late-secret\n")).toEqual({ kind: "added" });
    expect(redact("a late-secret!")).toBe("a [redacted]!");
    expect(redact.add("late-secret")).toEqual({ kind: "added" });
  });

  test("that is too short, too long or part of the placeholder is refused with the reason", () => {
    const redact = redactor(["short", "redacted"]);
    expect(redact("short [redacted]")).toBe("short [redacted]");
    expect(redact.add("1234567")).toMatchObject({ kind: "ignored", because: expect.stringContaining("by chance") });
    expect(redact.add("x".repeat(SECRET_CHARS_MAX + 1))).toMatchObject({ kind: "ignored" });
    expect(redact.add("redacted")).toMatchObject({ kind: "ignored" });
  });

  test("beyond the maximum number is refused", () => {
    const redact = redactor(Array.from({ length: SECRETS_MAX }, (_, index) => `secret-number-${index}.`));
    expect(redact.add("one-too-many")).toMatchObject({ kind: "ignored" });
    expect(redact(`secret-number-0. secret-number-${SECRETS_MAX - 1}. one-too-many`)).toBe(
      "[redacted] [redacted] one-too-many",
    );
  });
});

// Written in parts, so that secret scanners do not report them.
const key = (...parts: readonly string[]): string => parts.join("");
const PEM = [
  key("-----BEGIN RSA PRIV", "ATE KEY-----"),
  "Proc-Type: 4,ENCRYPTED",
  "DEK-Info: AES-128-CBC,00FF",
  "",
  "MIIEowIBAAKCAQEA/x+y=",
  key("-----END RSA PRIV", "ATE KEY-----"),
].join("\n");
const JWT = key("eyJ", "hbGciOiJIUzI1NiJ9.eyJ", "zdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl_-x");

describe("a text that looks like a token", () => {
  const redact = redactor();

  const tokens: readonly (readonly [name: string, text: string])[] = [
    ["sk-", key("sk-", "abcdefghijklmnop1234")],
    ["sk-ant-", key("sk-ant-", "api03-abcdefgh_ijklmnop-1234")],
    ["ghp_", key("ghp_", "abcdefghijklmnopqrst")],
    ["github_pat_", key("github_pat_", "11ABCDEFG0abcdefgh_ijkl")],
    ["AKIA", key("AKIA", "ABCDEFGHIJKLMNOP")],
    ["xoxb-", key("xoxb-", "1234567890-abcdef")],
    ["JWT", JWT],
    ["PEM", PEM],
  ];

  test.each(tokens)("%s is redacted in text, JSON and URLs", (_, token) => {
    expect(redact(`a ${token} b`)).toBe("a [redacted] b");
    const line = redact(JSON.stringify({ a: `first\n${token}`, b: JSON.stringify({ c: token }), d: 1 }));
    expect(JSON.parse(line)).toEqual({ a: "first\n[redacted]", b: '{"c":"[redacted]"}', d: 1 });
    if (token !== PEM) expect(redact(`/?q=a%3D${token}&r=1`)).toBe("/?q=a%3D[redacted]&r=1");
  });

  test("after `Bearer` is redacted", () => {
    expect(redact("authorization: Bearer abc.def-ghi_jkl=")).toBe("authorization: Bearer [redacted]");
    expect(redact('{"authorization":"bearer abcdefgh"}')).toBe('{"authorization":"bearer [redacted]"}');
  });

  test("as a truncated private key is redacted to its end, and a line of JSON stays valid", () => {
    expect(redact(PEM.slice(0, -30))).toBe("[redacted]");
    const line = JSON.stringify({ a: `${PEM.slice(0, -30)}\\`, b: "kept" });
    expect(JSON.parse(redact(line))).toEqual({ a: "[redacted]", b: "kept" });
  });

  test("is not an ordinary word", () => {
    const text = "task-management-for-everybody, a risk-of-something-or-other, GAKIAABCDEFGHIJKLMNOP, eyJust.eyJust.x";
    expect(redact(text)).toBe(text);
  });

  test("is not redacted twice", () => {
    for (const [, token] of tokens) expect(redact(redact(`x ${token} y`))).toBe("x [redacted] y");
  });
});

describe("hostile text", { meta: { id: "G33/redaction-time-linear" } }, () => {
  const MEBIBYTE = 1024 * 1024;
  const redact = redactor([`${"a".repeat(200)}b`, "ababababababababab", CANARY]);

  // With more than linear time, each of these would take minutes.
  test.each([
    ...["a", "sk-", "eyJ", "eyJaaaaaaaa.", "eyJaaaaaaaa.eyJa", "-eyJ", "_eyJa.", "\\neyJ", "bearer ", "Bearer\t\t"],
    ...["-----BEGIN ", key("-----BEGIN PRIV", "ATE KEY-----"), key("-----BEGIN PRIV", "ATE KEY-----\\n"), "-----"],
    ...["ab", "ghp_", "github_pat_", "AKIA", "xoxb-", "%3D", "\\u0000", "\\", "=", " ", "\n", "\ud800"],
  ])("of %j a million times over takes no longer than it is long", (piece) => {
    const text = piece.repeat(Math.ceil(MEBIBYTE / piece.length));
    expect(typeof redact(text)).toBe("string");
    expect(typeof redact(`${key("-----BEGIN PRIV", "ATE KEY-----")}${text}!`)).toBe("string");
    expect(typeof redact(`eyJ${text}`)).toBe("string");
  });

  test("of random pieces takes linear time and never throws", () => {
    const pieces = ["sk-", "eyJ", ".", "-", "-----BEGIN ", "PRIVATE KEY-----", "a", "\\n", "bearer ", CANARY, "=", '"'];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 64 }), (some) => {
        const piece = some.join("");
        expect(redact(piece.repeat(Math.ceil(MEBIBYTE / piece.length)))).not.toContain(CANARY);
      }),
      { numRuns: 30 },
    );
  });
});

/** The pieces of the secret, plain and in base64, that the text still contains. */
function leaks(text: string, secret: string): readonly string[] {
  const pieces = [0, 4, 8].map((from) => secret.slice(from, from + 6));
  return [...pieces, base64(secret).slice(4, 12)].filter((piece) => text.includes(piece));
}
