import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { ControlError } from "../../core/errors.ts";
import { openDataDir, writeServer } from "../../sdk/data-dir.ts";
import { takeLock } from "../../store/sqlite/file/owner.ts";
import { openControl } from "./connect.ts";

let folder: string;
let home: string;
let server: Server;
/** The Authorization headers that the server has received, in the order of arrival. */
let headers: (string | undefined)[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "bd-"));
  home = join(folder, "home");
  mkdirSync(home, { mode: 0o700 });
  headers = [];
  // Answers like a server without sessions.
  server = createServer((request, response) => {
    if (request.url !== "/healthz") headers.push(request.headers.authorization);
    response.setHeader("content-type", "application/json").end('{"sessions":[],"next":null}');
  });
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

const listening = (where: string | { readonly port: number; readonly host: string }): Promise<void> =>
  new Promise((resolve) => {
    server.listen(where as string, resolve);
  });

const note = (fields: object): void =>
  writeFileSync(join(home, "server.json"), JSON.stringify({ pid: 1, startedAt: 1, version: "0", ...fields }));

/** The note of a copied data directory, which another program serves from a socket elsewhere. */
function copyNote(): void {
  const socket = join(folder, "s");
  writeServer(openDataDir({ home, env: {} }), { pid: process.pid, socket, startedAt: 1, version: "0" });
  const copy = join(folder, "copy");
  cpSync(home, copy, { recursive: true });
  home = copy;
}

/** Holds the lock, as the server of the directory does. */
function holdLock(): void {
  const lock = takeLock(join(home, "belay.db"));
  onTestFinished(() => lock.release());
}

const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

async function refused(options: Parameters<typeof openControl>[0], env = {}): Promise<ControlError> {
  try {
    await (await openControl(options, env)).close();
  } catch (error) {
    return error as ControlError;
  }
  return expect.fail("the connection was opened");
}

describe("the server of a data directory", () => {
  test("is found by its note and connected to on its socket, without a token", async () => {
    const socket = join(folder, "s");
    await listening(socket);
    writeFileSync(join(home, "token"), "belay_secret\n");
    note({ socket, url: "http://127.0.0.1:1", pid: process.pid });
    holdLock();
    const connection = await openControl({}, { BELAY_HOME: home });
    expect(connection).toMatchObject({ kind: "server", where: `the server at ${socket}` });
    expect(await connection.control.sessions()).toEqual([]);
    await connection.close();
    expect(new Set(headers)).toEqual(new Set([undefined]));
  });

  test("without a socket is connected to at its address, with the token of the directory", async () => {
    await listening({ port: 0, host: "127.0.0.1" });
    writeFileSync(join(home, "token"), "belay_secret\n");
    note({ url: url(), pid: process.pid });
    const lock = takeLock(join(home, "belay.db"));
    onTestFinished(() => lock.release());
    // BELAY_TOKEN is only for an address that was typed, not for one that was found.
    const connection = await openControl({ home }, { BELAY_TOKEN: "belay_env" });
    await connection.close();
    expect(new Set(headers)).toEqual(new Set(["Bearer belay_secret"]));
  });

  test("G27: if the socket is gone, the server is connected to at the address of its note", async () => {
    await listening({ port: 0, host: "127.0.0.1" });
    note({ url: url(), socket: join(folder, "gone") });
    const lock = takeLock(join(home, "belay.db"));
    onTestFinished(() => lock.release());
    const connection = await openControl({ home }, {});
    expect(connection.where).toBe(`the server at ${url()}`);
    await connection.close();
  });

  test("if the note is gone, the server is connected to on the socket of the directory", async () => {
    await listening(join(home, "belay.sock"));
    const connection = await openControl({ home }, {});
    expect(connection.where).toBe(`the server at ${join(home, "belay.sock")}`);
    await connection.close();
  });

  test("a killed server's address may belong to another program: the token is not sent there", async () => {
    await listening({ port: 0, host: "127.0.0.1" });
    writeFileSync(join(home, "token"), "belay_secret\n");
    note({ url: url() });
    expect(await refused({ home })).toMatchObject({ code: "disconnected" });
    expect(headers).toEqual([]);
  });

  test.each([
    ["left when it was killed", () => {}, "does not answer"],
    ["copied with its directory", () => copyNote(), "No server is running"],
  ])("G38: a program on the socket of a stale note is not the server: the note was %s", async (_, place, message) => {
    const socket = join(folder, "s");
    await listening(socket);
    note({ socket, pid: process.pid });
    place();
    expect(await refused({ home })).toMatchObject({ code: "disconnected", message: expect.stringContaining(message) });
    expect(headers).toEqual([]);
  });

  test("G38: a socket that other users may replace is not connected to", async () => {
    const socket = join(folder, "s");
    await listening(socket);
    note({ socket, pid: process.pid });
    holdLock();
    chmodSync(folder, 0o777);
    expect(await refused({ home })).toMatchObject({
      ...{ code: "forbidden", message: expect.stringContaining("could replace") },
    });
    expect(headers).toEqual([]);
  });

  test.runIf(process.getuid?.() === 0)("G38: a socket of another user is not connected to (as root)", async () => {
    const socket = join(folder, "s");
    await listening(socket);
    note({ socket, pid: process.pid });
    holdLock();
    chownSync(socket, 12_345, 12_345);
    expect(await refused({ home })).toMatchObject({
      ...{ code: "forbidden", message: expect.stringContaining("belongs to another user") },
    });
    expect(headers).toEqual([]);
  });

  test("G38: a directory behind a symlink that other users may replace is not connected to", async () => {
    const open = join(folder, "open");
    mkdirSync(open);
    symlinkSync(home, join(open, "link"));
    chmodSync(open, 0o777);
    await listening(join(home, "belay.sock"));
    expect(await refused({ home: join(open, "link") })).toMatchObject({
      ...{ code: "forbidden", message: expect.stringContaining("could replace") },
    });
    expect(headers).toEqual([]);
  });

  test("a socket path that cannot be resolved counts as no running server", async () => {
    symlinkSync("belay.sock", join(home, "belay.sock"));
    expect(await refused({ home })).toMatchObject({
      ...{ code: "disconnected", message: expect.stringContaining("No server is running") },
    });
  });

  test("a starting server that holds the lock is waited for", async () => {
    const lock = takeLock(join(home, "belay.db"));
    onTestFinished(() => lock.release());
    const opening = openControl({ home }, {});
    await listening(join(home, "belay.sock"));
    await (await opening).close();
  });

  test("a server that exits during the connection attempt is not waited for", async () => {
    const socket = join(home, "belay.sock");
    server.removeAllListeners("request");
    server.once("request", (_, response) => {
      response.end();
      server.close();
      server.closeIdleConnections();
    });
    await listening(socket);
    note({ socket });
    expect(await refused({ home })).toMatchObject({
      code: "disconnected",
      message: expect.stringContaining("No server is running"),
    });
  });

  test("the error of a missing server names the directory and how to start one", async () => {
    const { code, message, hint } = await refused({ home });
    expect(code).toBe("disconnected");
    expect(message).toContain(home);
    expect(hint).toContain("belay serve");
  });

  test.each([
    ["its socket is gone", { socket: "gone" }],
    [
      "its process id is another program's, and its address does not answer",
      { pid: process.pid, url: "http://127.0.0.1:1" },
    ],
    ["it names no address", {}],
  ])(
    "the note of a killed server is ignored: %s",
    { meta: { id: "cli/stale-server-note-ignored" } },
    async (_, fields) => {
      note("socket" in fields ? { socket: join(folder, "gone") } : fields);
      const { code, message } = await refused({ home });
      expect(code).toBe("disconnected");
      expect(message).toContain("does not answer");
    },
  );
});

describe("a server that is named", () => {
  test("--token-file takes precedence over BELAY_TOKEN, and that over the directory's token", async () => {
    await listening({ port: 0, host: "127.0.0.1" });
    writeFileSync(join(home, "token"), "belay_home\n");
    note({ url: url(), pid: process.pid });
    const lock = takeLock(join(home, "belay.db"));
    onTestFinished(() => lock.release());
    const file = join(folder, "token-file");
    writeFileSync(file, "belay_file\n");
    for (const [options, env, token] of [
      [{ tokenFile: file }, { BELAY_TOKEN: "belay_env" }, "belay_file"],
      [{}, { BELAY_TOKEN: "belay_env" }, "belay_env"],
      [{}, { BELAY_TOKEN: "" }, "belay_home"],
    ] as const) {
      headers = [];
      await (await openControl({ url: url(), home, ...options }, env)).close();
      expect(new Set(headers)).toEqual(new Set([`Bearer ${token}`]));
    }
  });

  test.each<[string, () => void]>([
    ["the directory names no server", () => {}],
    ["its server was killed, and another program has the port", () => note({ url: url(), pid: 999_999_999 })],
    ["its server listens elsewhere", () => note({ url: "http://127.0.0.1:1", pid: process.pid })],
    ["the process that it names has no file of it open", () => note({ url: url(), pid: process.pid })],
  ])("G38: the token of a directory is sent only to the address of its server: %s", async (_, place) => {
    await listening({ port: 0, host: "127.0.0.1" });
    writeFileSync(join(home, "token"), "belay_home\n");
    place();
    expect(await refused({ url: url(), home })).toMatchObject({
      ...{ code: "forbidden", message: expect.stringContaining("is not sent to") },
    });
    expect(headers).toEqual([]);
  });

  test("G38: the token of a directory that other users may replace is not sent", async () => {
    await listening({ port: 0, host: "127.0.0.1" });
    writeFileSync(join(home, "token"), "belay_home\n");
    note({ url: url(), pid: process.pid });
    const lock = takeLock(join(home, "belay.db"));
    onTestFinished(() => lock.release());
    chmodSync(folder, 0o777);
    expect(await refused({ url: url(), home })).toMatchObject({ message: expect.stringContaining("could replace") });
    expect(headers).toEqual([]);
  });

  test("an address that does not answer is reported at once", async () => {
    expect((await refused({ url: "http://127.0.0.1:1", home })).message).toBe(
      "No server answers at http://127.0.0.1:1.",
    );
    expect((await refused({ socket: join(folder, "none"), home })).code).toBe("disconnected");
  });

  test.each(["ftp://x", "nonsense", "http://user:secret@127.0.0.1:1"])("%s is refused as an address", async (typed) => {
    const { code, message } = await refused({ url: typed, home });
    expect(code).toBe("invalid");
    expect(message).not.toContain("secret");
  });

  test("a token file that is missing, malformed or too large is refused by name", async () => {
    await listening({ port: 0, host: "127.0.0.1" });
    const odd = join(folder, "odd");
    writeFileSync(odd, "two words");
    const huge = join(folder, "huge");
    writeFileSync(huge, "x".repeat(5_000));
    for (const tokenFile of [join(folder, "none"), odd, huge]) {
      const { code, message } = await refused({ url: url(), tokenFile, home });
      expect(code).toBe("invalid");
      expect(message).toContain(tokenFile);
    }
    expect(headers).toEqual([]);
  });
});

test("a socket is sent only the token of --token-file, never that of the environment", async () => {
  const socket = join(folder, "s");
  await listening(socket);
  const tokenFile = join(folder, "named");
  writeFileSync(tokenFile, "belay_named");
  await (await openControl({ socket, home }, { BELAY_TOKEN: "belay_env" })).close();
  expect(new Set(headers)).toEqual(new Set([undefined]));
  headers = [];
  await (await openControl({ socket, home, tokenFile }, {})).close();
  expect(new Set(headers)).toEqual(new Set(["Bearer belay_named"]));
});
