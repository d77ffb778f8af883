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
  test("is returned once, verified afterwards, and never stored", () => {
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

  test("that is almost correct is invalid", () => {
    const tokens = open();
    const { secret } = tokens.add({ name: "ci", scopes: ["read"] });
    const wrong = ["", secret.slice(0, -1), `${secret}A`, secret.toUpperCase(), ` ${secret}`, secret.slice(6)];
    for (const guess of [...wrong, digestOf(secret).toString("hex")]) expect(tokens.verify(guess)).toBeUndefined();
  });

  test("is invalid once it has expired", async () => {
    const tokens = open();
    const { secret } = tokens.add({ name: "ci", scopes: ["read"], expiresAt: START + 5_000 });
    await clock.advance(4_999);
    expect(tokens.verify(secret)?.name).toBe("ci");
    await clock.advance(1);
    expect(tokens.verify(secret)).toBeUndefined();
  });

  test("that is rotated has a new secret, and the old one is invalid at once", () => {
    const tokens = open();
    const old = tokens.add({ name: "ci", scopes: ["read"] });
    clock.tick(10);
    const { secret, info } = tokens.rotate("ci");
    expect(secret).not.toBe(old.secret);
    expect(tokens.verify(old.secret)).toBeUndefined();
    expect(tokens.verify(secret)).toMatchObject({ name: "ci", scopes: new Set(["read"]) });
    expect(info).toMatchObject({ id: old.info.id, createdAt: START, lastRotatedAt: START + 10 });
  });

  test("that is rotated with a grace period has two valid secrets for that time", async () => {
    const tokens = open();
    const old = tokens.add({ name: "ci", scopes: ["read"] });
    const { secret } = tokens.rotate("ci", { graceMs: 60_000 });
    await clock.advance(59_999);
    expect([tokens.verify(old.secret)?.name, tokens.verify(secret)?.name]).toEqual(["ci", "ci"]);
    await clock.advance(1);
    expect([tokens.verify(old.secret)?.name, tokens.verify(secret)?.name]).toEqual([undefined, "ci"]);
  });

  test("that is revoked is invalid, and its name can be used again", () => {
    const tokens = open();
    const { secret } = tokens.add({ name: "ci", scopes: ["read"] });
    tokens.revoke("ci");
    expect(tokens.verify(secret)).toBeUndefined();
    expect(tokens.list()).toEqual([]);
    expect(tokens.verify(tokens.add({ name: "ci", scopes: ["read"] }).secret)?.name).toBe("ci");
  });

  test.each([
    [{ name: "", scopes: ["read"] }, /name of a token/],
    [{ name: "../x", scopes: ["read"] }, /name of a token/],
    [{ name: "ci", scopes: [] }, /scope/],
    [{ name: "ci", scopes: ["root"] }, /scope/],
    [{ name: "ci", scopes: ["read"], tenant: "a.b" }, /tenant/],
    [{ name: "ci", scopes: ["read"], expiresAt: START }, /expires/],
    [{ name: "local", scopes: ["read"] }, /reserved/],
    [{ name: "nobody", scopes: ["read"] }, /without a valid token/],
  ])("like %j is not made", (wanted, why) => {
    // Input from a command line can have any shape.
    expect(() => open().add(wanted as Parameters<Tokens["add"]>[0])).toThrow(why);
    expect(existsSync(list())).toBe(false);
  });

  test("with a name that exists, or is unknown, is refused without leaving temporary files", () => {
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

describe("two processes with the same tokens", () => {
  test("notice a rotation by the other within a second, without a signal", async () => {
    const [server, command] = [open(), open()];
    const { secret } = command.add({ name: "ci", scopes: ["read"] });
    await clock.advance(TOKENS_CHECK_MS);
    expect(server.verify(secret)?.name).toBe("ci");
    command.rotate("ci");
    expect(server.verify(secret)?.name).toBe("ci");
    await clock.advance(TOKENS_CHECK_MS);
    expect(server.verify(secret)).toBeUndefined();
  });

  test("accept a token that the other has just added, even right after an invalid token", () => {
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
    // The original directory is valid again when it is back.
    rmSync(dir, { recursive: true });
    renameSync(`${dir}.old`, dir);
    await clock.advance(TOKENS_CHECK_MS);
    expect(tokens.verify(secret)?.name).toBe("ci");
  });

  test("G38: neither does one that was created after its removal, perhaps with the same inode", async () => {
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

  test("a missing file makes all tokens invalid; so does an invalid file, which is reported once", async () => {
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

  test("write one at a time; the lock of a crashed process is removed", () => {
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
  test("is created once, in its own file, with all scopes", () => {
    const tokens = open();
    expect(tokens.ensureLocal()).toEqual({ file: local(), made: true });
    expect(tokens.ensureLocal()).toEqual({ file: local(), made: false });
    const secret = readLocalToken(dir) ?? "";
    expect(tokens.verify(secret)).toMatchObject({ name: "local", tenant: undefined });
    expect(tokens.verify(secret)?.scopes.has("admin")).toBe(true);
    expect(modeOf(local())).toBe("600");
  });

  test("changes with a rotation, and is removed when it is revoked", () => {
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

  test("that other users could read is not used, and is replaced at the next start", {
    meta: { id: "G35/readable-token-replaced" },
  }, () => {
    const tokens = open();
    tokens.ensureLocal();
    const old = readFileSync(local(), "utf8").trim();
    chmodSync(local(), 0o644);
    expect(() => readLocalToken(dir)).toThrow(/Other users can read/);
    expect(tokens.ensureLocal().made).toBe(true);
    expect(tokens.verify(old)).toBeUndefined();
    expect(tokens.verify(readLocalToken(dir) ?? "")?.name).toBe("local");
  });

  test("that is invalid is replaced", () => {
    const tokens = open();
    tokens.ensureLocal();
    writeFileSync(local(), "belay_scribble\n");
    expect(() => readLocalToken(dir)).toThrow(/does not contain a token/);
    expect(tokens.ensureLocal().made).toBe(true);
  });
});

describe("the directory of the tokens", () => {
  test("is created with mode 0700, and its files with 0600", () => {
    const tokens = open();
    tokens.ensureLocal();
    expect([dir, list(), local()].map(modeOf)).toEqual(["700", "600", "600"]);
  });

  test("is refused, and its mode not changed, if other users can read it", () => {
    mkdirSync(dir, { mode: 0o755 });
    expect(open).toThrow(/Other users can read/);
    expect(modeOf(dir)).toBe("755");
  });

  test("G35: is refused if other users can write to a parent directory, because they could replace it", () => {
    chmodSync(join(dir, ".."), 0o777);
    expect(open).toThrow(/could replace/);
    chmodSync(join(dir, ".."), 0o1777);
    expect(open).not.toThrow();
  });

  test("corrects the mode of a list that other users can read", () => {
    open().add({ name: "ci", scopes: ["read"] });
    chmodSync(list(), 0o644);
    open();
    expect([dir, list()].map(modeOf)).toEqual(["700", "600"]);
  });

  test("is refused if other users can write to it", {
    meta: { id: "G35/writable-token-directory-refused" },
  }, () => {
    mkdirSync(dir);
    chmodSync(dir, 0o1777);
    expect(open).toThrow(/Other users can write/);
    expect(modeOf(dir)).toBe("777");
  });

  test("is refused if it is a file or a dangling link", () => {
    writeFileSync(dir, "");
    expect(open).toThrow(expect.objectContaining({ code: "forbidden", message: expect.stringContaining(dir) }));
    rmSync(dir);
    symlinkSync(join(dir, "..", "nowhere"), dir);
    expect(open).toThrow(expect.objectContaining({ code: "forbidden", message: expect.stringContaining(dir) }));
  });

  test("is never read through a link: not the directory, not the list, not the token", () => {
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

  test.skipIf(!isRoot)(
    "and its files are refused if they belong to another user (only root can make such a file)",
    () => {
      open().ensureLocal();
      chownSync(list(), 12_345, 12_345);
      expect(open).toThrow(/another user/);
      chownSync(list(), 0, 0);
      chownSync(local(), 12_345, 12_345);
      expect(() => readLocalToken(dir)).toThrow(/another user/);
      chownSync(dir, 12_345, 12_345);
      expect(open).toThrow(/another user/);
    },
  );
});

describe("tokens.json", () => {
  const entry: TokenEntry = {
    ...{ id: "tok_1", name: "ci", scopes: ["read"], tenant: "acme", createdAt: 1, lastRotatedAt: 2, expiresAt: 3 },
    ...{ hash: "0".repeat(64), previous: { hash: "1".repeat(64), until: 4 } },
  };

  test("is read as it was written", () => {
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
    [encodeTokens([entry, entry]), /same name/],
    [encodeTokens(Array.from({ length: TOKENS_MAX + 1 }, () => entry)), /more than/],
    ...withField({ id: "1", name: "A", tenant: "", scopes: ["root"], createdAt: -1, lastRotatedAt: 1.5 }),
    ...withField({ expiresAt: "3", hash: "00", previous: {}, scopes: null, tenant: null }),
  ];

  test.each(senseless)("%s is refused with the reason", (text, why) => {
    expect(() => decodeTokens(text)).toThrow(why);
  });

  test("of 10,000 random texts is decoded or refused with a reason", () => {
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
