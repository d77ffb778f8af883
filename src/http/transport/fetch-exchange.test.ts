import { describe, expect, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { Guard } from "../auth/guard.ts";
import { Denial } from "../auth/guard-denial.ts";
import { READER_STALL_MS } from "../limits.ts";
import type { HttpAnswer, HttpRequest } from "./http-exchange.ts";
import { SECURITY_HEADERS } from "./listener-headers.ts";
import { Mount, type MountOptions } from "./mount.ts";
import type { Handle } from "./node-server.ts";

function fetchHandler(handle: Handle, options: Partial<MountOptions> = {}): (request: Request) => Promise<Response> {
  const mount = new Mount(handle, { clock: manualClock(), ...options });
  return (request) => mount.fetch(request);
}

const ok = (body: HttpAnswer["body"]): HttpAnswer => ({ status: 200, headers: { "content-type": "text/plain" }, body });

/** A stream that counts its reads and its early ends. */
function counted(last: number) {
  const seen = { reads: 0, left: 0 };
  const next = async (): Promise<IteratorResult<string, void>> => {
    seen.reads += 1;
    return seen.reads > last ? { done: true, value: undefined } : { done: false, value: `${seen.reads};` };
  };
  const leave = async (): Promise<IteratorResult<string, void>> => {
    seen.left += 1;
    return { done: true, value: undefined };
  };
  return { seen, pieces: { next, return: leave } };
}

const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}): Request =>
  new Request("http://localhost/p", { method: "POST", body, headers });

describe("a web-standard request", () => {
  test("is passed to the handler like any other, and its response has the security headers", async () => {
    let seen: HttpRequest | undefined;
    const handler = fetchHandler(async (request) => {
      seen = request;
      return ok("fine");
    });
    const answer = await handler(new Request("http://localhost:3000/a%2Fb?x=1", { headers: { "x-one": "1" } }));
    expect(seen).toMatchObject({ method: "GET", path: "/a%2Fb", via: "fetch" });
    expect([seen?.header("x-one"), seen?.header("host"), seen?.query.get("x")]).toEqual(["1", "localhost:3000", "1"]);
    expect(await answer.text()).toBe("fine");
    for (const [name, value] of Object.entries(SECURITY_HEADERS)) expect(answer.headers.get(name)).toBe(value);
    expect(answer.headers.get("x-request-id")).toBe(seen?.id);
  });

  test("is guarded like any other: a foreign host name is refused in a framework, too", async () => {
    const guard = new Guard({ clock: manualClock(), tokens: { verify: () => undefined } });
    const handler = fetchHandler(async (request) => {
      const front = guard.front(request);
      return front.kind === "denied" ? front.denial.answer(request.id) : ok("");
    });
    const statusOf = async (url: string, headers: Record<string, string> = {}) =>
      (await handler(new Request(url, { headers }))).status;
    expect(await statusOf("http://localhost:3000/")).toBe(200);
    expect(await statusOf("http://localhost/", { host: "localhost:80" })).toBe(200);
    expect(await statusOf("http://evil.com:3000/")).toBe(421);
    expect(await statusOf("http://localhost:3000/", { host: "evil.com" })).toBe(421);
    expect(await statusOf("http://evil.com/")).toBe(421);
    // A framework that uses another host in the URL: the client's Host header decides.
    expect(await statusOf("http://0.0.0.0:3000/", { host: "localhost:3000" })).toBe(200);
    expect(await statusOf("http://localhost:3000/", { origin: "https://evil.com" })).toBe(403);
  });

  test("has the same limits for its body", async () => {
    const handler = fetchHandler(async (request) => ok(await request.body(10)));
    expect(await (await handler(post("0123456789"))).text()).toBe("0123456789");
    expect((await handler(post("0123456789a"))).status).toBe(413);
    expect((await handler(post("", { "content-length": "11" }))).status).toBe(413);
    expect((await handler(post(new Uint8Array([0xff, 0xfe])))).status).toBe(400);
    expect((await handler(post("{}", { "content-encoding": "gzip" }))).status).toBe(415);
    expect(await (await handler(new Request("http://localhost/", { method: "POST" }))).text()).toBe("");
  });

  test("gets no details of internal errors", async () => {
    const troubles: unknown[] = [];
    const broken = new Error("/etc/secret.ts");
    const handler = fetchHandler(() => Promise.reject(broken), { onTrouble: (thrown) => troubles.push(thrown) });
    const answer = await handler(new Request("http://localhost/"));
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toContain("secret");
    expect(troubles).toEqual([broken]);
    const denied = fetchHandler(() => Promise.reject(new Denial(409, "conflict", "No.")));
    expect((await denied(new Request("http://localhost/"))).status).toBe(409);
  });
});

describe("a web-standard stream", () => {
  test("is read with backpressure", async () => {
    const { seen, pieces } = counted(3);
    const answer = await fetchHandler(async () => ok(pieces))(new Request("http://localhost/"));
    expect(seen.reads).toBe(0);
    const reader = answer.body?.pipeThrough(new TextDecoderStream(), {}).getReader();
    const read = [];
    for (let one = await reader?.read(); one?.done === false; one = await reader?.read()) read.push(one.value);
    expect(read.join("")).toBe("1;2;3;");
    expect(seen).toEqual({ reads: 4, left: 0 });
  });

  test("ends when its reader leaves, and after a HEAD request", async () => {
    const { seen, pieces } = counted(1_000);
    const handler = fetchHandler(async () => ok(pieces));
    const reader = (await handler(new Request("http://localhost/"))).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(seen).toEqual({ reads: 1, left: 1 });
    const head = await handler(new Request("http://localhost/", { method: "HEAD" }));
    expect([await head.text(), seen.left, seen.reads]).toEqual(["", 2, 1]);
  });

  test("disconnects a reader that reads nothing for a minute", async () => {
    const clock = manualClock();
    const { seen, pieces } = counted(9);
    const answer = await fetchHandler(async () => ok(pieces), { clock })(new Request("http://localhost/"));
    const reader = answer.body?.getReader();
    await reader?.read();
    await clock.advance(READER_STALL_MS - 1);
    expect(seen.left).toBe(0);
    await clock.advance(1);
    expect(seen.left).toBe(1);
    await expect(reader?.read()).rejects.toThrow(/read nothing/);
  });

  test("a body that the host has parsed is used, and a consumed body is not taken for an empty one", async () => {
    const mount = new Mount(async (request) => ok(await request.body(100)), { clock: manualClock() });
    const read = post('{"a":1}');
    await read.json();
    expect((await mount.fetch(read)).status).toBe(400);
    expect(await (await mount.fetch(read, { body: { a: 1 } })).text()).toBe('{"a":1}');
    expect((await mount.fetch(read, { body: "x".repeat(101) })).status).toBe(413);
  });
});
