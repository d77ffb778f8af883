import { generateKeyPairSync, sign } from "node:crypto";
import {
  chmodSync,
  chownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { Guard } from "../auth/guard.ts";
import { openTokens } from "../auth/tokens.ts";
import { SOCKET_PATH_BYTES_MAX, TOKEN_FAILURES_MAX } from "../limits.ts";
import type { HttpRequest } from "./http-exchange.ts";
import { type Listener, type ListenOptions, listen, type TcpPlace } from "./listener.ts";
import type { Handle } from "./node-server.ts";

const isRoot = process.getuid?.() === 0;
const clock = manualClock();
const listeners = new Set<Listener>();
let root: string;
let path: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "belay-"));
  path = join(root, "run", "belay.sock");
});

afterEach(async () => {
  await Promise.all([...listeners].map((listener) => listener.close()));
  listeners.clear();
  rmSync(root, { recursive: true });
});

async function open(handle: Handle, place: ListenOptions["place"]): Promise<Listener> {
  const listener = await listen(handle, { place, clock });
  listeners.add(listener);
  return listener;
}

const onSocket = (handle: Handle = say): Promise<Listener> => open(handle, { kind: "socket", path });

const say = async ({ via }: HttpRequest) => ({ status: 200, headers: {}, body: via });

interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** Sends a request on a separate connection. */
function ask(options: RequestOptions & { readonly ca?: string; readonly scheme?: "https" }): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const make = options.scheme === "https" ? httpsRequest : httpRequest;
    const request = make({ ...options, agent: false, setHost: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (piece) => {
        text += piece;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    request.on("error", reject).end(options.method === "POST" ? "{}" : undefined);
  });
}

const modeOf = (file: string): string => (lstatSync(file).mode & 0o777).toString(8);

describe("a private socket", () => {
  test("is accessible only to its owner, and is removed with its server", async () => {
    const listener = await onSocket();
    expect([join(root, "run"), path].map(modeOf)).toEqual(["700", "600"]);
    expect(await ask({ socketPath: path })).toMatchObject({ status: 200, text: "socket" });
    await listener.close();
    expect(lstatSync(path, { throwIfNoEntry: false })).toBeUndefined();
  });

  test("a directory that Belay did not make keeps its mode: one that other users can read is refused", async () => {
    mkdirSync(join(root, "run"), { mode: 0o755 });
    await expect(onSocket()).rejects.toMatchObject({ code: "forbidden", hint: expect.stringContaining("chmod 700") });
    expect(modeOf(join(root, "run"))).toBe("755");
  });

  test("G35: is not opened below a directory that other users can write to", async () => {
    chmodSync(root, 0o777);
    await expect(onSocket()).rejects.toMatchObject({ code: "forbidden", message: expect.stringContaining("replace") });
  });

  test("of a crashed server is replaced", { meta: { id: "crash/stale-socket-replaced" } }, async () => {
    mkdirSync(join(root, "run"), { mode: 0o700 });
    // The second hard link of a socket outlives the server, which removes the first.
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(`${path}.1`, resolve));
    linkSync(`${path}.1`, path);
    await new Promise((resolve) => server.close(resolve));
    expect(lstatSync(path).isSocket()).toBe(true);
    await onSocket();
    expect((await ask({ socketPath: path })).status).toBe(200);
  });

  test("of a live server is not replaced", async () => {
    await onSocket();
    await expect(onSocket()).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringMatching(/Another server/),
    });
    expect((await ask({ socketPath: path })).status).toBe(200);
  });

  test("does not replace a file, a directory or a link", async () => {
    mkdirSync(join(root, "run"), { mode: 0o700 });
    const place = [
      () => writeFileSync(path, "precious"),
      () => mkdirSync(path),
      () => symlinkSync(join(root, "elsewhere"), path),
    ];
    for (const put of place) {
      put();
      await expect(onSocket()).rejects.toThrow(/is not a socket/);
      expect(lstatSync(path, { throwIfNoEntry: false })).toBeDefined();
      rmSync(path, { recursive: true });
    }
  });

  test("is not opened in a directory that other users can write to", async () => {
    path = join(root, "belay.sock");
    chmodSync(root, 0o777);
    await expect(onSocket()).rejects.toThrow(/Other users can write/);
  });

  test.skipIf(!isRoot)("of another user, live or not, is not replaced (only root can make such a file)", async () => {
    mkdirSync(join(root, "run"), { mode: 0o700 });
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(`${path}.1`, resolve));
    linkSync(`${path}.1`, path);
    await new Promise((resolve) => server.close(resolve));
    chownSync(path, 12_345, 12_345);
    await expect(onSocket()).rejects.toThrow(/another user/);
    expect(lstatSync(path).isSocket()).toBe(true);
  });

  test("needs an absolute path of limited length", async () => {
    for (const wrong of ["belay.sock", join(root, "a".repeat(SOCKET_PATH_BYTES_MAX)), `${path}\0`, ""]) {
      await expect(open(say, { kind: "socket", path: wrong })).rejects.toMatchObject({ code: "invalid" });
    }
  });
});

describe("a port", () => {
  const onPort = (place: Partial<TcpPlace> = {}): Promise<Listener> => open(say, { kind: "tcp", ...place });

  test("is opened on the loopback interface by default", async () => {
    for (const host of [undefined, "localhost", "127.0.0.1", "127.0.0.2"]) {
      const { address } = await onPort({ host });
      expect(address).toMatchObject({ kind: "tcp", url: expect.stringMatching(/^http:\/\/127\.0\.0\.[12]:\d+$/) });
    }
  });

  test.each(["0.0.0.0", "::", "192.0.2.1", "::ffff:127.0.0.1", "10.0.0.1"])(
    "on %s is refused, and both ways out are named",
    async (host) => {
      await expect(onPort({ host })).rejects.toMatchObject({
        code: "forbidden",
        hint: expect.stringMatching(/TLS.*proxy.*secret/s),
      });
    },
  );

  test.each(["", "127.1", "0", "evil.com", "127.0.0.1.evil.com", "localhost."])(
    "on %j is refused: a name may lead anywhere",
    async (host) => {
      await expect(onPort({ host })).rejects.toMatchObject({ code: "invalid" });
    },
  );

  test("in use is reported as such", { meta: { id: "http/taken-port-reported" } }, async () => {
    const { address } = await onPort();
    const port = address.kind === "tcp" ? address.port : 0;
    await expect(onPort({ port })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringMatching(/Another program is listening/),
    });
  });
});

describe("a port for other machines", () => {
  const secret = "s".repeat(32);

  test("behind a proxy denies requests that bypass the proxy", async () => {
    const trustedProxy = { secret };
    const { address } = await open(say, { kind: "tcp", host: "0.0.0.0", trustedProxy });
    if (address.kind !== "tcp") throw new Error("It is no port.");
    expect(address.served).toEqual({ scheme: "https", port: address.port });
    const through = (headers: Record<string, string>) => ask({ port: address.port, headers });
    expect(await through({})).toMatchObject({ status: 403, text: expect.stringMatching(/through its proxy/) });
    expect((await through({ "x-belay-proxy": "S".repeat(32) })).status).toBe(403);
    expect((await through({ "x-forwarded-for": "127.0.0.1" })).status).toBe(403);
    expect((await through({ "x-belay-proxy": secret })).status).toBe(200);
  });

  test("needs a secret that cannot be guessed", async () => {
    const place = { kind: "tcp", host: "0.0.0.0", trustedProxy: { secret: "hunter2" } } as const;
    await expect(open(say, place)).rejects.toMatchObject({ code: "invalid" });
  });

  test("with TLS accepts only TLS, and reloads its certificate without a restart", {
    meta: { id: "http/certificate-reloaded" },
  }, async () => {
    const tls = { certFile: join(root, "cert.pem"), keyFile: join(root, "key.pem") };
    const put = (pair: { readonly cert: string; readonly key: string }) => {
      writeFileSync(tls.certFile, pair.cert);
      writeFileSync(tls.keyFile, pair.key, { mode: 0o600 });
    };
    const [first, second] = [selfSigned("first"), selfSigned("second")];
    put(first);
    const listener = await open(say, { kind: "tcp", host: "0.0.0.0", tls });
    const { address } = listener;
    if (address.kind !== "tcp") throw new Error("It is no port.");
    expect(address).toMatchObject({ url: expect.stringMatching(/^https:/), served: { scheme: "https" } });
    const port = address.port;
    expect(await ask({ scheme: "https", host: "localhost", port, ca: first.cert })).toMatchObject({ text: "tcp" });
    await expect(ask({ host: "127.0.0.1", port })).rejects.toThrow();
    put(second);
    await expect(ask({ scheme: "https", host: "localhost", port, ca: second.cert })).rejects.toThrow(/self-signed/);
    listener.reload();
    expect(await ask({ scheme: "https", host: "localhost", port, ca: second.cert })).toMatchObject({ status: 200 });
  });

  test("whose certificate cannot be read is not opened", async () => {
    const tls = { certFile: join(root, "none.pem"), keyFile: join(root, "none.pem") };
    await expect(open(say, { kind: "tcp", tls })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringMatching(/cannot be read/),
    });
  });
});

describe("a guarded port", () => {
  let port: number;
  let secret: string;
  let effects: number;

  beforeEach(async () => {
    const tokens = openTokens({ dir: join(root, "home"), clock });
    secret = tokens.add({ name: "ci", scopes: ["cancel"] }).secret;
    const guard = new Guard({ tokens, clock, origins: ["https://console.example.com"] });
    effects = 0;
    const handle: Handle = async (request) => {
      const front = guard.front(request);
      if (front.kind === "denied") return front.denial.answer(request.id);
      if (front.kind === "answered") return front.answer;
      const admission = guard.admit(request, { scope: "cancel", mutation: request.method !== "GET", stop: true });
      if (admission.kind === "denied") return admission.denial.answer(request.id);
      effects += 1;
      return { status: 200, headers: front.headers, body: admission.actor.name };
    };
    const { address } = await open(handle, { kind: "tcp" });
    await onSocket(handle);
    if (address.kind === "tcp") guard.serves(address.served);
    port = address.kind === "tcp" ? address.port : 0;
  });

  const post = (headers: Record<string, string | string[]>, target = "/") =>
    ask({
      ...{ host: "127.0.0.1", port, path: target, method: "POST" },
      headers: {
        ...{ host: `127.0.0.1:${port}`, authorization: `Bearer ${secret}`, "content-type": "application/json" },
        ...headers,
      },
    });

  test("admits a program with a token, and a page of a configured origin", async () => {
    expect(await post({})).toMatchObject({ status: 200, text: "ci" });
    const page = await post({ origin: "https://console.example.com", "sec-fetch-site": "cross-site" });
    expect(page.status).toBe(200);
    expect(page.headers["access-control-allow-origin"]).toBe("https://console.example.com");
    expect(page.headers["access-control-allow-credentials"]).toBeUndefined();
    expect(effects).toBe(2);
  });

  test.each([
    ["Host of evil", { host: "evil.com" }, 421],
    ["Host of evil with a port", { host: "evil.com:80" }, 421],
    ["Host that begins like ours", { host: "127.0.0.1.evil.com" }, 421],
    ["Host without our port", { host: "127.0.0.1" }, 421],
    ["Origin of evil", { origin: "https://evil.com" }, 403],
    ["Origin of null", { origin: "null" }, 403],
    ["Origin that begins like a configured one", { origin: "https://console.example.com.evil.com" }, 403],
    ["Origin that ends like a configured one", { origin: "https://evil-console.example.com" }, 403],
    ["Origin of another port", { origin: "http://127.0.0.1:1" }, 403],
    ["request that another site has caused", { "sec-fetch-site": "cross-site" }, 403],
    ["token that is wrong", { authorization: `Bearer belay_${"A".repeat(43)}` }, 401],
    ["token in another scheme", { authorization: "Basic YTpi" }, 401],
    ["body of a form", { "content-type": "application/x-www-form-urlencoded" }, 415],
    ["body of plain text", { "content-type": "text/plain" }, 415],
  ])("denies a %s, without an effect", async (_, headers, status) => {
    const answer = await post(headers);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text).error.requestId).toBe(answer.headers["x-request-id"]);
    expect(answer.headers["access-control-allow-origin"]).toBeUndefined();
    expect(effects).toBe(0);
  });

  test("denies two Host headers, a valid and a foreign one, in either order", async () => {
    for (const hosts of [`Host: 127.0.0.1:${port}\r\nHost: evil.com`, `Host: evil.com\r\nHost: 127.0.0.1:${port}`]) {
      const socket = connect(port, "127.0.0.1");
      socket.end(`GET / HTTP/1.1\r\n${hosts}\r\nAuthorization: Bearer ${secret}\r\nConnection: close\r\n\r\n`);
      const [first] = await socket.toArray();
      expect(String(first)).toMatch(/^HTTP\/1\.1 421/);
    }
    expect(effects).toBe(0);
  });

  test("denies a token in the query, and does not repeat it", async () => {
    const answer = await post({}, `/?access_token=${secret}`);
    expect(answer.status).toBe(400);
    expect(answer.text).not.toContain(secret);
  });

  test("locks out guesses even on the loopback interface, but no valid token", async () => {
    const guess = () => post({ authorization: `Bearer belay_${"A".repeat(43)}` });
    for (let n = 0; n < TOKEN_FAILURES_MAX; n += 1) expect((await guess()).status).toBe(401);
    const locked = await guess();
    expect([locked.status, locked.headers["retry-after"]]).toEqual([429, "60"]);
    expect((await post({})).status).toBe(200);
    await clock.advance(60_000);
    expect((await guess()).status).toBe(401);
  });

  test("needs no token on the private socket, but the right Host", async () => {
    const headers = { host: "localhost", "content-type": "application/json" };
    expect(await ask({ socketPath: path, method: "POST", headers })).toMatchObject({ status: 200, text: "local" });
    expect((await ask({ socketPath: path, headers: { host: "evil.com" } })).status).toBe(421);
    const page = { host: "localhost:9000", origin: "https://evil.com" };
    expect((await ask({ socketPath: path, headers: page })).status).toBe(403);
  });
});

/** A certificate for localhost, generated by the test, so that the repository contains no key. */
function selfSigned(name: string): { readonly cert: string; readonly key: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = der(0x30, der(0x06, Buffer.from("2a8648ce3d040302", "hex")));
  const commonName = der(0x30, der(0x06, Buffer.from("550403", "hex")), der(0x0c, Buffer.from(name)));
  const subject = der(0x30, der(0x31, commonName));
  const time = (text: string): Buffer => der(0x18, Buffer.from(text));
  const names = der(0x30, der(0x82, Buffer.from("localhost")));
  const extension = der(0x30, der(0x06, Buffer.from("551d11", "hex")), der(0x04, names));
  const signed = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.from([1])),
    algorithm,
    subject,
    der(0x30, time("20200101000000Z"), time("21200101000000Z")),
    subject,
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, der(0x30, extension)),
  );
  const cert = der(0x30, signed, algorithm, der(0x03, Buffer.from([0]), sign("sha256", signed, privateKey)));
  const pem = `-----BEGIN CERTIFICATE-----\n${cert.toString("base64")}\n-----END CERTIFICATE-----\n`;
  return { cert: pem, key: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

/** One DER element of a certificate: tag, length and content. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const length = body.length < 128 ? [body.length] : [0x82, body.length >> 8, body.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}
