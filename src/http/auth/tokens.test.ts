import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import { type ManualClock, manualClock } from "../../testing/manual-clock.ts";
import { TOKENS_CHECK_MS, TOKENS_MAX, TOKENS_WRITE_MS_MAX } from "../limits.ts";
import { decodeTokens, digestOf, encodeTokens, makeSecret, type TokenEntry } from "./token.ts";
import { readLocalToken, readTokens, TokensDirectory } from "./token-file.ts";
import { openTokens, type Tokens } from "./tokens.ts";

const START = Date.UTC(2026, 0, 1);
const isRoot = process.getuid?.() === 0;

let dir: string;
let clock: ManualClock;

beforeEach(() => {
  dir = join(mkdtempSync(join(tmpdir(), "belay-tokens-")), "home");
  clock = manualClock(START);
});

afterEach(() => rmSync(join(dir, ".."), { recursive: true }));

const open = (): Tokens => openTokens({ dir, clock });
const list = (): string => join(dir, "tokens.json");
const local = (): string => join(dir, "token");
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe("a token", () => {
  test("is shown once, recognised ever after, and kept nowhere", () => {
    const tokens = open();
    const { secret, info } = tokens.add({ name: "ci", scopes: ["read", "cancel"], tenant: "acme" });
    expect(secret).toMatch(/^belay_[A-Za-z0-9_-]{43}$/);
    expect(tokens.verify(secret)).toEqual({ name: "ci", scopes: new Set(["read", "cancel"]), tenant: "acme" });
    expect(open().verify(secret)?.name).toBe("ci");
    const kept = readFileSync(list(), "utf8");
    expect(kept).not.toContain(secret.slice(6));
    expect(kept).toContain(createHash("sha256").update(secret).digest("hex"));
    expect(JSON.stringify([info, tokens.list()])).not.toMatch(/hash|[0-9a-f]{64}/);
    expect(info).toMatchObject({ name: "ci", createdAt: START, lastRotatedAt: START });
  });

  test("that is nearly right is wrong", () => {
    const tokens = open();
    const { secret } = tokens.add({ name: "ci", scopes: ["read"] });
    const wrong = ["", secret.slice(0, -1), `${secret}A`, secret.toUpperCase(), ` ${secret}`, secret.slice(6)];
    for (const guess of [...wrong, digestOf(secret).toString("hex")]) expect(tokens.verify(guess)).toBeUndefined();
  });

  test("ends when it expires", async () => {
    const tokens = open();
    const { secret } = tokens.add({ name: "ci", scopes: ["read"], expiresAt: START + 5_000 });
    await clock.advance(4_999);
    expect(tokens.verify(secret)?.name).toBe("ci");
    await clock.advance(1);
    expect(tokens.verify(secret)).toBeUndefined();
  });

  test("that is rotated has a new secret, and the old one ends at once", () => {
    const tokens = open();
    const old = tokens.add({ name: "ci", scopes: ["read"] });
    clock.tick(10);
    const { secret, info } = tokens.rotate("ci");
    expect(secret).not.toBe(old.secret);
    expect(tokens.verify(old.secret)).toBeUndefined();
    expect(tokens.verify(secret)).toMatchObject({ name: "ci", scopes: new Set(["read"]) });
    expect(info).toMatchObject({ id: old.info.id, createdAt: START, lastRotatedAt: START + 10 });
  });

  test("that is rotated with a grace has two secrets, for that long", async () => {
    const tokens = open();
    const old = tokens.add({ name: "ci", scopes: ["read"] });
    const { secret } = tokens.rotate("ci", { graceMs: 60_000 });
    await clock.advance(59_999);
    expect([tokens.verify(old.secret)?.name, tokens.verify(secret)?.name]).toEqual(["ci", "ci"]);
    await clock.advance(1);
    expect([tokens.verify(old.secret)?.name, tokens.verify(secret)?.name]).toEqual([undefined, "ci"]);
  });

  test("that is revoked ends, and its name is free again", () => {
    const tokens = open();
    const { secret } = tokens.add({ name: "ci", scopes: ["read"] });
    tokens.revoke("ci");
    expect(tokens.verify(secret)).toBeUndefined();
    expect(tokens.list()).toEqual([]);
    expect(tokens.verify(tokens.add({ name: "ci", scopes: ["read"] }).secret)?.name).toBe("ci");
  });

  test.each([
    [{ name: "", scopes: ["read"] }, /named/],
    [{ name: "../x", scopes: ["read"] }, /named/],
    [{ name: "ci", scopes: [] }, /scope/],
    [{ name: "ci", scopes: ["root"] }, /scope/],
    [{ name: "ci", scopes: ["read"], tenant: "a.b" }, /tenant/],
    [{ name: "ci", scopes: ["read"], expiresAt: START }, /expires/],
    [{ name: "local", scopes: ["read"] }, /own/],
    [{ name: "nobody", scopes: ["read"] }, /without a valid token/],
  ])("like %j is not made", (wanted, why) => {
    // What comes from a command line has any shape.
    expect(() => open().add(wanted as Parameters<Tokens["add"]>[0])).toThrow(why);
    expect(existsSync(list())).toBe(false);
  });

  test("with a name that is taken or unknown is refused, and nothing is left half done", () => {
    const tokens = open();
    const { secret } = tokens.add({ name: "ci", scopes: ["read"] });
    expect(() => tokens.add({ name: "ci", scopes: ["admin"] })).toThrow(/already/);
    const unknown = expect.objectContaining({ code: "not_found", hint: 'Did you mean "ci"?' });
    expect(() => tokens.rotate("cj")).toThrow(unknown);
    expect(() => tokens.rotate("ci", { graceMs: -1 })).toThrow(/0 to/);
    expect(tokens.verify(secret)?.name).toBe("ci");
    expect(readdirSync(dir)).toEqual(["tokens.json"]);
  });

  test("beyond the maximum is refused", () => {
    const entry = (n: number): TokenEntry => ({
      ...{ id: `tok_${n}`, name: `n${n}`, scopes: ["read"], createdAt: 0, lastRotatedAt: 0 },
      hash: digestOf(String(n)).toString("hex"),
    });
    const tokens = open();
    writeFileSync(list(), encodeTokens(Array.from({ length: TOKENS_MAX }, (_, n) => entry(n))), { mode: 0o600 });
    expect(() => tokens.add({ name: "more", scopes: ["read"] })).toThrow(/already/);
  });
});

describe("two programs with the same tokens", () => {
  test("what one rotates, the other notices within a second, without a signal", async () => {
    const [server, command] = [open(), open()];
    const { secret } = command.add({ name: "ci", scopes: ["read"] });
    await clock.advance(TOKENS_CHECK_MS);
    expect(server.verify(secret)?.name).toBe("ci");
    command.rotate("ci");
    expect(server.verify(secret)?.name).toBe("ci");
    await clock.advance(TOKENS_CHECK_MS);
    expect(server.verify(secret)).toBeUndefined();
  });

  test("what one has just added, the other accepts at once, also right after a token that it refused", () => {
    const [server, command] = [open(), open()];
    for (const name of ["ci", "cd"]) {
      expect(server.verify(makeSecret())).toBeUndefined();
      const { secret } = command.add({ name, scopes: ["read"] });
      expect(server.verify(secret)?.name).toBe(name);
    }
  });

  test("G38: a directory that was put in the place of the data directory makes no token valid", async () => {
    const troubles: ControlError[] = [];
    const tokens = openTokens({ dir, clock, onTrouble: (trouble) => troubles.push(trouble) });
    const { secret } = tokens.add({ name: "ci", scopes: ["read"] });
    renameSync(dir, `${dir}.old`);
    const forged = openTokens({ dir, clock }).add({ name: "ci", scopes: ["admin"] });
    expect(tokens.verify(forged.secret)).toBeUndefined();
    await clock.advance(TOKENS_CHECK_MS);
    expect(tokens.verify(forged.secret)).toBeUndefined();
    expect(tokens.verify(secret)).toBeUndefined();
    expect(() => tokens.rotate("ci")).toThrow(/is not the directory that it was/);
    expect(troubles.map(({ code }) => code)).toEqual(["forbidden"]);
    // Back in its place, it counts again.
    rmSync(dir, { recursive: true });
    renameSync(`${dir}.old`, dir);
    await clock.advance(TOKENS_CHECK_MS);
    expect(tokens.verify(secret)?.name).toBe("ci");
  });

  test("G38: nor one that was made after it was removed, and might have the same number", async () => {
    const tokens = openTokens({ dir, clock });
    tokens.ensureLocal();
    for (let count = 0; count < 20; count += 1) {
      rmSync(dir, { recursive: true });
      const forged = openTokens({ dir, clock });
      const { secret } = forged.add({ name: "ci", scopes: ["admin"] });
      await clock.advance(TOKENS_CHECK_MS);
      expect(tokens.verify(secret)).toBeUndefined();
      forged.close();
    }
    tokens.close();
  });

  test.runIf(existsSync("/proc/self/fd"))(
    "G38: the list is read from the directory that was opened, not by path",
    () => {
      open().add({ name: "ours", scopes: ["read"] });
      const held = new TokensDirectory(dir);
      renameSync(dir, `${dir}.old`);
      open().add({ name: "forged", scopes: ["admin"] });
      expect(readTokens(held.through).map(({ name }) => name)).toEqual(["ours"]);
      expect(held.look()).not.toBe("same");
      held.close();
    },
  );

  test("a file that is gone takes all tokens with it; one that makes no sense does too, and is told once", async () => {
    const troubles: ControlError[] = [];
    const tokens = openTokens({ dir, clock, onTrouble: (trouble) => troubles.push(trouble) });
    const { secret } = tokens.add({ name: "ci", scopes: ["read"] });
    const good = readFileSync(list(), "utf8");
    writeFileSync(list(), good.slice(0, -5));
    for (let n = 0; n < 3; n += 1) {
      await clock.advance(TOKENS_CHECK_MS);
      expect(tokens.verify(secret)).toBeUndefined();
    }
    expect(troubles.map(({ message }) => message)).toEqual(["tokens.json cannot be read: it is not JSON."]);
    writeFileSync(list(), good);
    await clock.advance(TOKENS_CHECK_MS);
    expect(tokens.verify(secret)?.name).toBe("ci");
    rmSync(list());
    await clock.advance(TOKENS_CHECK_MS);
    expect(tokens.verify(secret)).toBeUndefined();
    expect(troubles).toHaveLength(1);
  });

  test("only one writes at a time; what a dead one left is taken away", () => {
    const tokens = open();
    writeFileSync(`${list()}.new`, "");
    utimesSync(`${list()}.new`, START / 1000, START / 1000);
    expect(() => tokens.add({ name: "ci", scopes: ["read"] })).toThrow(/Another program/);
    clock.tick(TOKENS_WRITE_MS_MAX);
    expect(tokens.verify(tokens.add({ name: "ci", scopes: ["read"] }).secret)?.name).toBe("ci");
    expect(readdirSync(dir)).toEqual(["tokens.json"]);
  });
});

describe("the token of this user's command line", () => {
  test("is made once, lies in a file of its own, and may do everything", () => {
    const tokens = open();
    expect(tokens.ensureLocal()).toEqual({ file: local(), made: true });
    expect(tokens.ensureLocal()).toEqual({ file: local(), made: false });
    const secret = readLocalToken(dir) ?? "";
    expect(tokens.verify(secret)).toMatchObject({ name: "local", tenant: undefined });
    expect(tokens.verify(secret)?.scopes.has("admin")).toBe(true);
    expect(modeOf(local())).toBe("600");
  });

  test("follows its rotation, and goes when it is revoked", () => {
    const tokens = open();
    tokens.ensureLocal();
    const old = readLocalToken(dir) ?? "";
    const { secret } = tokens.rotate("local");
    expect(readLocalToken(dir)).toBe(secret);
    expect(tokens.verify(old)).toBeUndefined();
    tokens.revoke("local");
    expect(readLocalToken(dir)).toBeUndefined();
    expect(readdirSync(dir)).toEqual(["tokens.json"]);
  });

  test("that others could read is not used, and replaced by the next server", {
    meta: { id: "G35/readable-token-replaced" },
  }, () => {
    const tokens = open();
    tokens.ensureLocal();
    const old = readFileSync(local(), "utf8").trim();
    chmodSync(local(), 0o644);
    expect(() => readLocalToken(dir)).toThrow(/Others can read/);
    expect(tokens.ensureLocal().made).toBe(true);
    expect(tokens.verify(old)).toBeUndefined();
    expect(tokens.verify(readLocalToken(dir) ?? "")?.name).toBe("local");
  });

  test("that is no token any more is replaced", () => {
    const tokens = open();
    tokens.ensureLocal();
    writeFileSync(local(), "belay_scribble\n");
    expect(() => readLocalToken(dir)).toThrow(/does not hold a token/);
    expect(tokens.ensureLocal().made).toBe(true);
  });
});

describe("where they lie", () => {
  test("the directory is made for its owner alone, and so are the files", () => {
    const tokens = open();
    tokens.ensureLocal();
    expect([dir, list(), local()].map(modeOf)).toEqual(["700", "600", "600"]);
  });

  test("a directory that others may look into is refused, and left as it is", () => {
    mkdirSync(dir, { mode: 0o755 });
    expect(open).toThrow(/Others may look into/);
    expect(modeOf(dir)).toBe("755");
  });

  test("G35: one below a directory that others may write to is refused: they could put another in its place", () => {
    chmodSync(join(dir, ".."), 0o777);
    expect(open).toThrow(/could replace/);
    chmodSync(join(dir, ".."), 0o1777);
    expect(open).not.toThrow();
  });

  test("a file that others can read is closed to them", () => {
    open().add({ name: "ci", scopes: ["read"] });
    chmodSync(list(), 0o644);
    open();
    expect([dir, list()].map(modeOf)).toEqual(["700", "600"]);
  });

  test("a directory that others may write to is refused", {
    meta: { id: "G35/writable-token-directory-refused" },
  }, () => {
    mkdirSync(dir);
    chmodSync(dir, 0o1777);
    expect(open).toThrow(/Others may write/);
    expect(modeOf(dir)).toBe("777");
  });

  test("a file, or a link to nowhere, where the directory should be is refused", () => {
    writeFileSync(dir, "");
    expect(open).toThrow(expect.objectContaining({ code: "forbidden", message: expect.stringContaining(dir) }));
    rmSync(dir);
    symlinkSync(join(dir, "..", "nowhere"), dir);
    expect(open).toThrow(expect.objectContaining({ code: "forbidden", message: expect.stringContaining(dir) }));
  });

  test("a link is followed nowhere: not as the directory, not as the list, not as the token", () => {
    const tokens = open();
    tokens.ensureLocal();
    const elsewhere = join(dir, "..", "elsewhere");
    symlinkSync(dir, elsewhere);
    expect(() => openTokens({ dir: elsewhere, clock })).toThrow(/link/);
    const copy = join(dir, "..", "copy.json");
    writeFileSync(copy, readFileSync(list()), { mode: 0o600 });
    rmSync(list());
    symlinkSync(copy, list());
    expect(open).toThrow(/is a link/);
    rmSync(local());
    symlinkSync(copy, local());
    expect(() => readLocalToken(dir)).toThrow(/is a link/);
  });

  test.skipIf(!isRoot)("what belongs to another user is refused (only root can make such a file)", () => {
    open().ensureLocal();
    chownSync(list(), 12_345, 12_345);
    expect(open).toThrow(/another user/);
    chownSync(list(), 0, 0);
    chownSync(local(), 12_345, 12_345);
    expect(() => readLocalToken(dir)).toThrow(/another user/);
    chownSync(dir, 12_345, 12_345);
    expect(open).toThrow(/another user/);
  });
});

describe("tokens.json", () => {
  const entry: TokenEntry = {
    ...{ id: "tok_1", name: "ci", scopes: ["read"], tenant: "acme", createdAt: 1, lastRotatedAt: 2, expiresAt: 3 },
    ...{ hash: "0".repeat(64), previous: { hash: "1".repeat(64), until: 4 } },
  };

  test("comes back as it was written", () => {
    expect(decodeTokens(encodeTokens([entry]))).toEqual([entry]);
  });

  const withField = (fields: Readonly<Record<string, unknown>>): readonly (readonly [string, RegExp])[] =>
    Object.entries(fields).map(([field, value]) => [
      JSON.stringify({ version: 1, tokens: [{ ...entry, [field]: value }] }),
      RegExp(`valid ${field}`),
    ]);

  const senseless: readonly (readonly [string, RegExp])[] = [
    ["", /not JSON/],
    ["[]", /version/],
    ['{"version":2,"tokens":[]}', /version/],
    ['{"version":1}', /list/],
    [encodeTokens([entry, entry]), /twice/],
    [encodeTokens(Array.from({ length: TOKENS_MAX + 1 }, () => entry)), /more than/],
    ...withField({ id: "1", name: "A", tenant: "", scopes: ["root"], createdAt: -1, lastRotatedAt: 1.5 }),
    ...withField({ expiresAt: "3", hash: "00", previous: {}, scopes: null, tenant: null }),
  ];

  test.each(senseless)("%s makes no sense, and says why", (text, why) => {
    expect(() => decodeTokens(text)).toThrow(why);
  });

  test("10,000 inventions: each is read or refused with a reason, nothing else", () => {
    const text = encodeTokens([entry]);
    const damaged = fc
      .tuple(fc.nat(text.length), fc.nat(20), fc.string({ maxLength: 5 }))
      .map(([at, length, put]) => text.slice(0, at) + put + text.slice(at + length));
    const invented = fc.record({ version: fc.constant(1), tokens: fc.array(fc.jsonValue({ maxDepth: 2 })) });
    fc.assert(
      fc.property(
        fc.oneof(
          damaged,
          fc.json({ maxDepth: 2 }),
          invented.map((one) => JSON.stringify(one)),
        ),
        (input) => {
          try {
            for (const { hash } of decodeTokens(input)) expect(hash).toMatch(/^[0-9a-f]{64}$/);
          } catch (thrown) {
            expect(thrown).toBeInstanceOf(ControlError);
          }
        },
      ),
      { numRuns: 10_000 },
    );
  });
});
