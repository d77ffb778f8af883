import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ControlError } from "../../core/errors.ts";
import { Gate } from "../../testing/gate.ts";
import { type ManualClock, manualClock } from "../../testing/manual-clock.ts";
import { Denial } from "../auth/guard-denial.ts";
import { PIPELINED_MAX, READER_STALL_MS, UNWANTED_BYTES_MAX } from "../limits.ts";
import type { HttpAnswer, HttpRequest, ResponseStream } from "./http-exchange.ts";
import { SECURITY_HEADERS } from "./listener-headers.ts";
import { GONE } from "./node-exchange.ts";
import { type Handle, type NodeLimits, NodeServer } from "./node-server.ts";

let clock: ManualClock;
const servers = new Set<NodeServer>();
let troubles: unknown[];
const clients = new Set<Socket>();

beforeEach(() => {
  clock = manualClock();
  troubles = [];
});

afterEach(async () => {
  for (const client of clients) client.destroy();
  clients.clear();
  const closed = [...servers].map((server) => server.close(0));
  clock.tick(0);
  await Promise.all(closed);
  servers.clear();
});

async function serve(handle: Handle, limits: Partial<NodeLimits> = {}): Promise<NodeServer> {
  const opened = new NodeServer({ handle, clock, via: "tcp", limits, onTrouble: (thrown) => troubles.push(thrown) });
  await new Promise<void>((resolve) => opened.server.listen(0, "127.0.0.1", resolve));
  servers.add(opened);
  return opened;
}

interface Client {
  readonly socket: Socket;
  /** The data received so far. */
  readonly received: () => string;
  /** Resolves once the received data matches. */
  hears(pattern: RegExp): Promise<string>;
  /** All received data, once the server has closed the connection. */
  readonly all: Promise<string>;
}

function dial({ server }: NodeServer): Client {
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  clients.add(socket);
  let text = "";
  socket.on("error", () => {});
  socket.on("data", (piece) => {
    text += piece.toString("latin1");
  });
  const all = new Promise<string>((resolve) => socket.on("close", () => resolve(text)));
  socket.on("end", () => socket.end());
  const hears = (pattern: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const look = (): void => void (pattern.test(text) && resolve(text));
      socket.on("data", look);
      socket.on("close", () => reject(new Error(`It closed after ${JSON.stringify(text)}`)));
      look();
    });
  return { socket, received: () => text, hears, all };
}

/** Sends a text, ends the connection, and returns everything that the server sends. */
async function tell(server: NodeServer, text: string): Promise<string> {
  const client = dial(server);
  client.socket.write(text, "latin1");
  return client.all;
}

const LAST = "Host: x\r\nConnection: close\r\n\r\n";
const ok = (body: string): HttpAnswer => ({ status: 200, headers: { "content-type": "text/plain" }, body });
const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
const bodyOf = (answer: string): string => answer.slice(answer.indexOf("\r\n\r\n") + 4);
const post = (length: number, more = ""): string =>
  `POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n${more}\r\n`;
const echo = async (request: HttpRequest): Promise<HttpAnswer> => ok(await request.body(100));

function expectError(answer: string, status: number, code: string, retryable = false): void {
  expect(statusOf(answer)).toBe(status);
  const { error } = JSON.parse(bodyOf(answer));
  expect(error).toMatchObject({ code, message: expect.any(String), hint: expect.any(String), retryable });
  expect(answer.toLowerCase()).toContain(`x-request-id: ${error.requestId.toLowerCase()}`);
  expect(answer.toLowerCase()).toContain("x-content-type-options: nosniff");
  expect(answer).not.toMatch(/\.ts|node:|at \w+ \(/);
}

/** Lets the event loop turn until a condition is true. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

/** A stream whose reads a test can count, and that it can end. */
class Pieces {
  reads = 0;
  readonly returned = new Gate();
  readonly #next: (n: number) => Promise<string | undefined>;

  constructor(next: (n: number) => Promise<string | undefined>) {
    this.#next = next;
  }

  async next(): Promise<IteratorResult<string, void>> {
    this.reads += 1;
    const value = await Promise.race([this.#next(this.reads), this.returned.opened]);
    return typeof value === "string" ? { done: false, value } : { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<string, void>> {
    this.returned.open();
    return { done: true, value: undefined };
  }
}

const never = (): Promise<undefined> => new Promise(() => {});
const streamed = (body: ResponseStream): HttpAnswer => ({
  status: 200,
  headers: { "content-type": "text/plain" },
  body,
});

describe("the handler", () => {
  test("gets the request, and every response has the security headers", async () => {
    let seen: HttpRequest | undefined;
    const server = await serve(async (request) => {
      seen = request;
      return ok("héllo");
    });
    const answer = await tell(server, `GET /a%2Fb//c?x=1&x=2 HTTP/1.1\r\nX-One: 1\r\n${LAST}`);
    expect(seen).toMatchObject({ method: "GET", path: "/a%2Fb//c", via: "tcp" });
    expect(seen?.query.getAll("x")).toEqual(["1", "2"]);
    expect(seen?.header("x-one")).toBe("1");
    expect(Buffer.from(bodyOf(answer), "latin1").toString()).toBe("héllo");
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) expect(answer).toContain(`${name}: ${value}\r\n`);
    expect(answer).toContain(`x-request-id: ${seen?.id}\r\n`);
    expect(answer).toContain("content-length: 6\r\n");
  });

  test("gets both of two headers with the same name", async () => {
    const seen: (string | undefined)[] = [];
    const server = await serve(async (request) => {
      seen.push(...["host", "origin", "authorization", "content-type"].map((name) => request.header(name)));
      return ok("");
    });
    const twice = ["Host", "Origin", "Authorization", "Content-Type"].map((name) => `${name}: a\r\n${name}: b\r\n`);
    await tell(server, `GET / HTTP/1.1\r\nConnection: close\r\n${twice.join("")}\r\n`);
    expect(seen).toEqual(["a, b", "a, b", "a, b", "a, b"]);
  });

  test("gets a header after three thousand others, and no Host if it is missing", async () => {
    const seen: (string | undefined)[] = [];
    const server = await serve(async (request) => {
      seen.push(request.header("origin"), request.header("host"));
      return ok("");
    });
    await tell(server, `GET / HTTP/1.1\r\n${"a:b\r\n".repeat(3_000)}Origin: evil\r\nConnection: close\r\n\r\n`);
    expect(seen).toEqual(["evil", undefined]);
  });

  test("gets a HEAD as a GET, and its body is not sent", async () => {
    const pieces = new Pieces(never);
    const server = await serve(async ({ path, method }) => (path === "/s" ? streamed(pieces) : ok(method)));
    const text = await tell(server, `HEAD / HTTP/1.1\r\n${LAST}`);
    expect([statusOf(text), bodyOf(text)]).toEqual([200, ""]);
    expect(text).toContain("content-length: 3\r\n");
    expect(bodyOf(await tell(server, `HEAD /s HTTP/1.1\r\n${LAST}`))).toBe("");
    expect([pieces.reads, pieces.returned.isOpen]).toEqual([0, true]);
  });
});

describe("an invalid request", () => {
  const refuse = (): Promise<HttpAnswer> => Promise.reject(new Error("It must not get here."));

  test.each([
    ["a whole address", `GET http://evil.com/ HTTP/1.1\r\n${LAST}`, 400],
    ["another whole address", `GET https://127.0.0.1/ HTTP/1.1\r\n${LAST}`, 400],
    ["no HTTP at all", "hello\r\n\r\n", 400],
    ["the beginning of TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400],
    [
      "two ideas of its length",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
      400,
    ],
    [
      "a length and none",
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      400,
    ],
    ["a header with a space before its colon", `GET / HTTP/1.1\r\nHost : x\r\n${LAST}`, 400],
    ["a header on two lines", `GET / HTTP/1.1\r\nA: b\r\n c\r\n${LAST}`, 400],
    ["a zero byte in a header", `GET / HTTP/1.1\r\nA: \0\r\n${LAST}`, 400],
    ["headers of 20 KiB", `GET / HTTP/1.1\r\nA: ${"a".repeat(20_480)}\r\n${LAST}`, 431],
    ["an address of 9 KiB", `GET /${"a".repeat(9_216)} HTTP/1.1\r\n${LAST}`, 414],
    ["an unknown expectation", `GET / HTTP/1.1\r\nExpect: more\r\n${LAST}`, 417],
  ])("(%s) is refused with the usual error body", async (_, text, status) => {
    const server = await serve(refuse);
    expectError(await tell(server, text), status, "invalid");
    expect(troubles).toEqual([]);
  });

  test("for a tunnel or an unknown upgrade does not change the protocol", async () => {
    const server = await serve(async ({ method }) => ok(method));
    expect(await tell(server, `CONNECT evil.com:443 HTTP/1.1\r\n${LAST}`)).toBe("");
    const upgrade = "Upgrade: websocket\r\nConnection: Upgrade, close\r\nHost: x\r\n\r\n";
    expect(bodyOf(await tell(server, `GET / HTTP/1.1\r\n${upgrade}`))).toBe("GET");
  });

  test("does not affect the next one", async () => {
    const server = await serve(async () => ok("fine"));
    await Promise.all(Array.from({ length: 20 }, () => tell(server, "\0\0\0\r\n\r\n")));
    expect(bodyOf(await tell(server, `GET / HTTP/1.1\r\n${LAST}`))).toBe("fine");
  });

  test.each([
    ["headers", "GET / HTTP/1.1\r\nHost: x\r\nA: "],
    ["a body", `${post(10)}slow`],
  ])(
    "%s that do not arrive in time end the connection",
    { meta: { id: "G33/slow-request-times-out" } },
    async (_, text) => {
      const failed = new Gate<unknown>();
      const server = await serve((request) => request.body(100).then(ok, (thrown) => failed.open(thrown) ?? ok("")), {
        ...{ headersTimeoutMs: 30, requestTimeoutMs: 30, timeoutCheckMs: 5 },
      });
      const answer = await tell(server, text);
      // Unlike an invalid request, a slow one can be retried.
      expectError(answer, 408, "unavailable", true);
      expect(bodyOf(answer)).toContain("nothing was changed. Send it again");
      if (text.startsWith("POST")) expect(await failed.opened).toBe(GONE);
    },
  );
});

describe("a body", () => {
  test("is read completely, in however many chunks it arrives", async () => {
    const server = await serve(echo);
    const client = dial(server);
    client.socket.write(post(6, "Connection: close\r\n"));
    client.socket.write("abc");
    client.socket.write("def");
    expect(bodyOf(await client.all)).toBe("abcdef");
  });

  test("with a declared length that is too large is refused unread, and the connection stays open", {
    meta: { id: "G33/declared-large-body-unread" },
  }, async () => {
    const server = await serve(echo);
    const client = dial(server);
    client.socket.write(post(101));
    const answer = await client.hears(/requestId.*\}\}$/s);
    expectError(answer, 413, "invalid");
    client.socket.write("x".repeat(101));
    client.socket.write(`GET / HTTP/1.1\r\n${LAST}`);
    expect(await client.all).toMatch(/\}\}HTTP\/1\.1 200 OK/);
  });

  test("of unknown length is refused when it becomes too large", {
    meta: { id: "G33/chunked-large-body-refused" },
  }, async () => {
    const server = await serve(echo);
    const client = dial(server);
    client.socket.write("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.socket.write(`c8\r\n${"x".repeat(200)}\r\n`);
    expectError(await client.hears(/requestId.*\}\}$/s), 413, "invalid");
    client.socket.write(`0\r\n\r\nGET / HTTP/1.1\r\n${LAST}`);
    expect(await client.all).toMatch(/\}\}HTTP\/1\.1 200 OK/);
  });

  test("that does not end after the refusal closes the connection", async () => {
    const server = await serve(async (request) => new Denial(401, "unauthenticated", "No.").answer(request.id));
    const client = dial(server);
    client.socket.write(post(1024 ** 3));
    expect(statusOf(await client.hears(/\}\}$/))).toBe(401);
    const piece = Buffer.alloc(UNWANTED_BYTES_MAX / 4);
    const pump = (): void => void (client.socket.destroyed || client.socket.write(piece, () => setImmediate(pump)));
    pump();
    expect(statusOf(await client.all)).toBe(401);
    expect(client.socket.bytesWritten).toBeLessThan(1024 ** 3);
  });

  test("that is compressed or not UTF-8 is refused", { meta: { id: "http/compressed-body-refused" } }, async () => {
    const server = await serve(echo);
    const close = "Connection: close\r\n";
    expectError(await tell(server, `${post(2, `Content-Encoding: gzip\r\n${close}`)}{}`), 415, "invalid");
    const packed = `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n${close}\r\n2\r\n{}\r\n0\r\n\r\n`;
    expectError(await tell(server, packed), 415, "invalid");
    expectError(await tell(server, `${post(2, close)}\xff\xfe`), 400, "invalid");
  });

  test("with Expect: 100-continue is requested when the handler reads it", async () => {
    const server = await serve(echo);
    const client = dial(server);
    client.socket.write(post(2, "Expect: 100-continue\r\nConnection: close\r\n"));
    await client.hears(/^HTTP\/1\.1 100 Continue\r\n\r\n$/);
    client.socket.write("{}");
    expect(bodyOf(bodyOf(await client.all))).toBe("{}");
  });

  test("with Expect: 100-continue is not requested if it is refused, and the connection is closed", async () => {
    const server = await serve(echo);
    expectError(await tell(server, post(101, "Expect: 100-continue\r\n")), 413, "invalid");
    const denied = await serve(async (request) => new Denial(403, "forbidden", "No.").answer(request.id));
    expectError(await tell(denied, post(2, "Expect: 100-continue\r\n")), 403, "forbidden");
  });
});

describe("several requests on one connection", () => {
  test("are answered in order, whichever response is ready first", async () => {
    const gates = new Map(["/1", "/2", "/3"].map((path) => [path, new Gate()]));
    const arrived: string[] = [];
    const server = await serve(async ({ path }) => {
      arrived.push(path);
      await gates.get(path)?.opened;
      return ok(`<${path}>`);
    });
    const all = tell(
      server,
      `GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\nGET /3 HTTP/1.1\r\n${LAST}`,
    );
    await until(() => arrived.length === 3);
    for (const path of ["/3", "/2", "/1"]) gates.get(path)?.open();
    expect((await all).match(/<.*?>/g)).toEqual(["</1>", "</2>", "</3>"]);
  });

  test("beyond the pipelining limit are refused and do not reach the handler", async () => {
    const gate = new Gate();
    let reached = 0;
    const server = await serve(async () => {
      reached += 1;
      await gate.opened;
      return ok("");
    });
    const client = dial(server);
    client.socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(PIPELINED_MAX + 1));
    await until(() => reached === PIPELINED_MAX);
    gate.open();
    const answers = (await client.all).match(/HTTP\/1\.1 \d+/g) ?? [];
    expect(answers).toHaveLength(PIPELINED_MAX + 1);
    expect(answers.at(-1)).toBe("HTTP/1.1 429");
    expect(reached).toBe(PIPELINED_MAX);
  });

  test("are all aborted when the client disconnects, even those that wait for their turn", async () => {
    const gone: string[] = [];
    const server = await serve(async ({ path, signal }) => {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      expect(signal.reason).toBe(GONE);
      gone.push(path);
      return ok("");
    });
    const client = dial(server);
    client.socket.write("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => server.connections === 1);
    client.socket.resetAndDestroy();
    await until(() => gone.length === 2);
    expect(troubles).toEqual([]);
  });
});

describe("a stream", () => {
  test("is sent piece by piece, and ends", async () => {
    const gate = new Gate();
    const pieces = new Pieces(async (n) => {
      if (n === 2) await gate.opened;
      return n < 3 ? `piece ${n}\n` : undefined;
    });
    const client = dial(await serve(async () => streamed(pieces)));
    client.socket.write(`GET / HTTP/1.1\r\n${LAST}`);
    expect(await client.hears(/piece 1/)).not.toContain("piece 2");
    gate.open();
    expect(await client.all).toMatch(/piece 2\n\r\n0\r\n\r\n$/);
  });

  test("that waits ends when its reader disconnects or half-closes the connection", async () => {
    for (const leave of ["resetAndDestroy", "destroy", "end"] as const) {
      const pieces = new Pieces(never);
      const server = await serve(async () => streamed(pieces));
      const client = dial(server);
      client.socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      await until(() => pieces.reads === 1);
      client.socket[leave]();
      await pieces.returned.opened;
      await until(() => server.connections === 0);
      await server.close(0);
    }
    expect(troubles).toEqual([]);
  });

  test("has backpressure, and continues when the reader does", async () => {
    const piece = "x".repeat(64 * 1024);
    const pieces = new Pieces(async (n) => (n <= 1_000 ? piece : undefined));
    const server = await serve(async () => streamed(pieces));
    let ours: Socket | undefined;
    server.server.on("connection", (socket) => {
      ours = socket;
    });
    const client = dial(server);
    client.socket.pause();
    client.socket.write(`GET / HTTP/1.1\r\n${LAST}`);
    await until(() => clock.pending.length > 0);
    const { reads } = pieces;
    expect(reads).toBeLessThan(1_000);
    expect(ours?.writableLength).toBeLessThan((ours?.writableHighWaterMark ?? 0) + piece.length + 1_024);
    let bytes = 0;
    client.socket.removeAllListeners("data");
    client.socket.on("data", (some) => {
      bytes += some.length;
    });
    client.socket.resume();
    await client.all;
    expect(bytes).toBeGreaterThan(1_000 * piece.length);
    expect(pieces.reads).toBe(1_001);
  });

  test("whose reader reads nothing is disconnected", { meta: { id: "G31/stalled-reader-dropped" } }, async () => {
    const pieces = new Pieces(async () => "x".repeat(64 * 1024));
    const server = await serve(async () => streamed(pieces));
    const client = dial(server);
    client.socket.pause();
    client.socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => clock.pending.length > 0);
    clock.tick(READER_STALL_MS - 1);
    expect(pieces.returned.isOpen).toBe(false);
    clock.tick(1);
    await pieces.returned.opened;
    await until(() => server.connections === 0);
  });

  test("that fails does not look complete", async () => {
    const broken = new Error("The disk is gone.");
    const server = await serve(async () =>
      streamed(new Pieces((n) => (n === 1 ? Promise.resolve("one") : Promise.reject(broken)))),
    );
    const answer = await tell(server, `GET / HTTP/1.1\r\n${LAST}`);
    expect(answer).not.toMatch(/0\r\n\r\n$/);
    expect(answer).not.toContain("disk");
    expect(troubles).toEqual([broken]);
  });
});

describe("a response", () => {
  test("that is long is sent completely to a slow reader", async () => {
    const long = "é".repeat(1024 * 1024);
    const server = await serve(async () => ok(long));
    const answer = await tell(server, `GET / HTTP/1.1\r\n${LAST}`);
    expect(Buffer.from(bodyOf(answer), "latin1").toString()).toBe(long);
  });

  test("is sent to a client that has closed its side, and its wait ends", async () => {
    const server = await serve(async ({ signal }) => {
      if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      return ok("not yet");
    });
    const client = dial(server);
    client.socket.end("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(bodyOf(await client.all)).toBe("not yet");
  });

  test.each([
    ["a denial", new Denial(429, "overloaded", "Slow down.", { headers: { "retry-after": "3" } }), 429, "overloaded"],
    ["a foreign error", new TypeError("/etc/secret.ts"), 500, "internal"],
    ["an error that should have been answered", new ControlError("conflict", "/etc/secret.ts"), 500, "internal"],
    ["no error at all", "/etc/secret.ts", 500, "internal"],
  ])("for %s that was thrown has its status and no details", async (_, thrown, status, code) => {
    const server = await serve(() => Promise.reject(thrown));
    const answer = await tell(server, `GET / HTTP/1.1\r\n${LAST}`);
    expect(statusOf(answer)).toBe(status);
    expect(JSON.parse(bodyOf(answer)).error.code).toBe(code);
    expect(answer).not.toContain("secret");
    expect(troubles).toEqual(status === 500 ? [thrown] : []);
    expect(answer.includes("retry-after: 3")).toBe(status === 429);
  });

  test("with an invalid header becomes an error, not a crash", {
    meta: { id: "http/unsendable-header-is-error" },
  }, async () => {
    const server = await serve(async () => ({ status: 200, headers: { "x-a": "b\r\nset-cookie: c" }, body: "" }));
    const answer = await tell(server, `GET / HTTP/1.1\r\n${LAST}`);
    expect(statusOf(answer)).toBe(500);
    expect(answer).not.toContain("set-cookie");
  });
});

describe("closing", () => {
  test("closes idle connections at once, and lets responses finish", async () => {
    const gate = new Gate();
    let reached = false;
    const server = await serve(async () => {
      reached = true;
      await gate.opened;
      return ok("done");
    });
    const [idle, busy] = [dial(server), dial(server)];
    busy.socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => reached && server.connections === 2);
    const closed = server.close(10_000);
    expect(await idle.all).toBe("");
    gate.open();
    expect(await busy.all).toMatch(/connection: close\r\n.*done$/s);
    await closed;
    expect(clock.pending).toEqual([]);
  });

  test("closes the connection of a response in flight as soon as it is complete", async () => {
    const gate = new Gate();
    const pieces = new Pieces((n) => (n === 1 ? Promise.resolve("one") : gate.opened.then(() => undefined)));
    const server = await serve(async () => streamed(pieces), { keepAliveMs: 600_000 });
    const client = dial(server);
    client.socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await client.hears(/one/);
    const closed = server.close(10_000);
    gate.open();
    expect(await client.all).toMatch(/0\r\n\r\n$/);
    await closed;
  });

  test("closes unfinished responses at the limit", async () => {
    const pieces = new Pieces(never);
    const server = await serve(async () => streamed(pieces));
    const client = dial(server);
    client.socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    await until(() => pieces.reads === 1);
    const closed = server.close(10_000);
    clock.tick(9_999);
    expect(pieces.returned.isOpen).toBe(false);
    clock.tick(1);
    await closed;
    await pieces.returned.opened;
    await client.all;
  });
});

test("garbage after a request without a response yet does not replace its response", async () => {
  const gate = new Gate();
  let handled = 0;
  const server = await serve(async () => {
    handled += 1;
    await gate.opened;
    return ok("stopped");
  });
  const client = dial(server);
  client.socket.write("POST /cancel HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  await until(() => handled === 1);
  let broken = false;
  server.server.once("clientError", () => {
    broken = true;
  });
  client.socket.write("\u0000 no request at all\r\n\r\n");
  await until(() => broken);
  gate.open();
  const answer = await client.all;
  expect([statusOf(answer), answer.match(/HTTP\/1\.1/g)?.length]).toEqual([200, 1]);
  expect(answer).toContain("stopped");
});
