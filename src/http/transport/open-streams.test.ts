import { afterEach, expect, test } from "vitest";
import { openTestBelay, untilAborted } from "../../../test/fixtures/belay.ts";
import { plainRequest } from "../../../test/fixtures/plain-request.ts";
import { manualClock, settled } from "../../testing/manual-clock.ts";
import { Guard } from "../auth/guard.ts";
import { makeHandler } from "../handler.ts";
import { STREAM_CHECK_MS, TOKEN_FAILURES_MAX } from "../limits.ts";
import type { Actor, HttpAnswer, ResponseStream, TokenScope } from "./http-exchange.ts";
import { OpenStreams } from "./open-streams.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

const holder = (...scopes: readonly TokenScope[]): Actor => ({
  name: "ann",
  scopes: new Set(scopes),
  tenant: undefined,
});

/** A server whose only token can be changed while streams are open. */
async function served() {
  const fixture = await openTestBelay({ work: (turn) => untilAborted(turn.signal) });
  closing.push(() => fixture.belay.close({ mode: "cancel" }));
  const clock = manualClock();
  const holding: { verify: () => Actor | undefined } = { verify: () => holder("read") };
  const guard = new Guard({ tokens: { verify: () => holding.verify() }, clock });
  guard.serves({ scheme: "http", port: 1 });
  const handler = makeHandler({ control: fixture.belay, guard, clock, version: "0" });
  const headers = { host: "127.0.0.1:1", authorization: "Bearer ann" };
  const get = (target: string): Promise<HttpAnswer> => handler.handle(plainRequest({ target, headers }));
  const local = (target: string): Promise<HttpAnswer> =>
    handler.handle(plainRequest({ target, headers: { host: "localhost" }, via: "socket" }));
  const later = async (): Promise<void> => {
    await clock.advance(STREAM_CHECK_MS);
  };
  return { fixture, clock, holding, handler, get, local, later };
}

function outpour({ body }: HttpAnswer): ResponseStream {
  if (typeof body !== "object") throw new Error("It is no stream.");
  return body;
}

/** Reads as fast as there is something to read. */
class Reader {
  readonly pieces: ResponseStream;
  #text = "";
  over = false;

  constructor(answer: HttpAnswer) {
    this.pieces = outpour(answer);
    void this.#read();
  }

  /** The text received since the last call. */
  received(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }

  async #read(): Promise<void> {
    for (let step = await this.pieces.next(); step.done !== true; step = await this.pieces.next()) {
      this.#text += step.value;
    }
    this.over = true;
  }
}

const BYE = 'event: bye\ndata: {"reason":"unauthenticated"}\n\n';

const LATER: readonly (readonly [string, () => Actor | undefined])[] = [
  ["was revoked", () => undefined],
  ["may do less than before", () => holder("prompt")],
  ["is another's now", () => ({ ...holder("read"), tenant: "acme" })],
  [
    "cannot be looked up",
    () => {
      throw new Error("no file handles");
    },
  ],
];

test.each(LATER)("G35: a stream whose token %s ends within a second", async (_, verify) => {
  const { fixture, holding, handler, get, later } = await served();
  const session = await fixture.belay.createSession();
  const readers = [new Reader(await get(`/v1/sessions/${session.id}/events`)), new Reader(await get("/v1/events"))];
  await later();
  for (const reader of readers)
    expect([reader.received(), reader.over]).toEqual([expect.stringContaining("retry"), false]);

  holding.verify = verify;
  await later();
  await session.prompt("not for them").outcome;
  for (const reader of readers) expect([reader.received(), reader.over]).toEqual([BYE, true]);
  expect(handler.streams).toBe(0);
});

test("a stream continues if its token gets more scopes, or if it came over the private socket", async () => {
  const { fixture, holding, get, local, later } = await served();
  const session = await fixture.belay.createSession();
  const reader = new Reader(await get(`/v1/sessions/${session.id}/events`));
  const own = new Reader(await local(`/v1/sessions/${session.id}/events`));
  holding.verify = () => holder("read", "prompt");
  await later();
  expect(reader.over).toBe(false);
  holding.verify = () => undefined;
  await later();
  expect([reader.over, own.over]).toEqual([true, false]);
});

test("verifying the tokens of streams again triggers no lockout", async () => {
  const { fixture, holding, get, later } = await served();
  const session = await fixture.belay.createSession();
  const paths = Array.from({ length: TOKEN_FAILURES_MAX + 1 }, () => `/v1/sessions/${session.id}/events`);
  const readers = (await Promise.all(paths.map(get))).map((answer) => new Reader(answer));
  holding.verify = () => undefined;
  await later();
  expect(readers.every(({ over }) => over)).toBe(true);
  expect((await get("/v1/live")).status).toBe(401);
});

test("without streams there is no timer", async () => {
  const { fixture, clock, get } = await served();
  const session = await fixture.belay.createSession();
  const before = clock.pending.length;
  const { pieces } = new Reader(await get(`/v1/sessions/${session.id}/events`));
  expect(clock.pending.length).toBeGreaterThan(before);
  await pieces.return?.();
  expect(clock.pending).toHaveLength(before);
});

test("G35: a request that waits for an outcome does not get it once its token is revoked", async () => {
  const { fixture, holding, get } = await served();
  const session = await fixture.belay.createSession();
  const run = session.prompt("work");
  await run.accepted;
  const answer = get(`/v1/runs/${run.id}/outcome?waitMs=60000`);
  await settled();
  holding.verify = () => undefined;
  await run.cancel();
  expect((await answer).status).toBe(401);
});

test("a stream whose source throws at the start is released", () => {
  let taken = 0;
  const guard = {
    stream: () => {
      taken += 1;
      const release = (): void => {
        taken -= 1;
      };
      return { kind: "opened", release } as const;
    },
  };
  const parts = { clock: manualClock(), guard, onError: () => {}, onCountChanged: () => {} };
  const streams = new OpenStreams(parts as unknown as ConstructorParameters<typeof OpenStreams>[0]);
  const source = (): never => {
    throw new Error("there is nothing to follow");
  };
  const actor = { name: "ann", scopes: new Set<"read">(["read"]), tenant: undefined };
  expect(() => streams.open(source, actor, plainRequest({ target: "/" }))).toThrow("nothing to follow");
  expect(taken).toBe(0);
});
