// G28: a store that refuses, hangs or is slow, under a server. For every route of the table: the request is answered in
// bounded time with the code of the error, and no change is acknowledged that the store has not recorded.
import { describe, expect, onTestFinished, test } from "vitest";
import { STORE_WAIT_MS } from "../../src/core/limits.ts";
import type { SessionId } from "../../src/core/model/ids.ts";
import { isMutation } from "../../src/http/routes/route.ts";
import { ROUTE_NAMES, type RouteName, routeOf } from "../../src/http/routes/routes.ts";
import { type Actor, fetchBelay, type Mounted } from "../../src/http/serve.ts";
import { TOKEN_SCOPES } from "../../src/http/transport/http-exchange.ts";
import type { Turn } from "../../src/ports/agent.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { MemoryStore } from "../../src/store/memory/memory-store.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { FaultyStore, type StoreTrouble } from "../../src/testing/faulty-store.ts";
import { bodyOf, idsOf, pathOf } from "./samples.ts";

interface Case {
  readonly trouble: StoreTrouble;
  /** The status of a prompt, and of the stop of a live run. */
  readonly status: number;
}

const refusing = (code: "unavailable" | "store_full" | "store_locked" | "store_corrupt", status: number): Case => ({
  trouble: { kind: "refusing", code, also: "reads" },
  status,
});

const CASES: Readonly<Record<string, Case>> = {
  "refuses as unavailable": refusing("unavailable", 503),
  "refuses as full": refusing("store_full", 507),
  "refuses as locked": refusing("store_locked", 503),
  "refuses as damaged": refusing("store_corrupt", 500),
  hangs: { trouble: { kind: "silent", applied: false }, status: 503 },
  "is slow": { trouble: { kind: "slow", commitMs: 300, clock: systemClock }, status: 202 },
};

/** Their responses do not end as long as the server runs. */
const STREAMS = /events|output\/stream/;

/** Stops and answers for unknown objects: there is nothing to write. */
const WRITES_NOTHING: ReadonlySet<string> = new Set([
  "cancelBegun",
  "cancelCall",
  "cancelProcess",
  "cancelQuestion",
  "answerQuestion",
]);

/** In addition to the timeout of the store: a second wait after the first one, and a busy machine. */
const BOUND_MS = 4 * STORE_WAIT_MS;

const owner: Actor = { name: "owner", scopes: new Set(TOKEN_SCOPES), tenant: undefined };

interface Served {
  readonly belay: Belay;
  readonly mounted: Mounted;
  readonly store: FaultyStore;
  readonly began: Map<SessionId, AbortSignal>;
}

async function served(): Promise<Served> {
  const store = new FaultyStore(new MemoryStore({ clock: systemClock }));
  const began = new Map<SessionId, AbortSignal>();
  const agent = ({ signal, sessionId }: Turn): Promise<string> => {
    began.set(sessionId, signal);
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve("stopped")));
  };
  const belay = await openBelay({ store, agent, graceMs: 50, loopWatch: "off" });
  const limits = { changesPerSecond: 1_000, changesBurst: 1_000 };
  const mounted = fetchBelay(belay, { tokens: () => owner, hosts: ["belay.test"], limits });
  onTestFinished(async () => {
    store.heal();
    await mounted.close();
    await belay.close({ mode: "cancel", limitMs: 200 });
  });
  return { belay, mounted, store, began };
}

/** A separate session with a live run for each route, so that no route affects another one. */
async function live({ belay, began }: Served): Promise<ReturnType<typeof idsOf>> {
  const session = await belay.createSession();
  const run = session.prompt("wait");
  run.outcome.catch(() => {});
  const { runId } = await run.accepted;
  await expect.poll(() => began.has(session.id)).toBe(true);
  return { ...idsOf(undefined), session: session.id, run: runId };
}

async function ask({ mounted }: Served, name: RouteName, ids: ReturnType<typeof idsOf>) {
  const route = routeOf(name);
  const body = bodyOf(route);
  const headers = { authorization: "Bearer x", "content-type": "application/json" };
  const keyed = isMutation(route) ? { ...headers, "idempotency-key": `key of ${name}` } : headers;
  const url = `https://belay.test${pathOf(route, ids)}`;
  const sent = { method: route.method, headers: keyed, ...(body === undefined ? {} : { body }) };
  const since = performance.now();
  const answer = await mounted.fetch(new Request(url, sent));
  const isStream = answer.headers.get("content-type")?.includes("event-stream") === true;
  const text = isStream ? "" : await answer.text();
  if (isStream) await answer.body?.cancel();
  return { name, status: answer.status, text, ms: performance.now() - since };
}

const NAMES = ROUTE_NAMES.filter((one) => !STREAMS.test(routeOf(one).path));

describe.each(Object.entries(CASES))("G28: a store that %s", (_, { trouble, status }) => {
  test("every route is answered in bounded time, and no unrecorded change is acknowledged", {
    timeout: 120_000,
  }, async () => {
    const at = await served();
    const ids = await Promise.all(NAMES.map(() => live(at)));
    at.store.trouble = trouble;
    const answers = await Promise.all(NAMES.map((name, index) => ask(at, name, ids[index] ?? idsOf(undefined))));
    for (const { name, status: answered, text, ms } of answers) {
      expect(text, name).not.toContain('"code":"internal"');
      expect(ms, name).toBeLessThan(BOUND_MS);
      const isAcknowledged = isMutation(routeOf(name)) && answered < 300 && trouble.kind !== "slow";
      if (isAcknowledged) expect(WRITES_NOTHING).toContain(name);
    }
    const statusOf = (name: RouteName) => answers.find((one) => one.name === name)?.status;
    expect(statusOf("promptSession")).toBe(status);
    if (status >= 500) expect(statusOf("cancelRun")).toBe(status);
  });

  test("a stop is carried out before it is recorded", { timeout: 60_000 }, async () => {
    const at = await served();
    const { run, session } = await live(at);
    at.store.trouble = trouble;
    const receipt = ask(at, "cancelRun", { ...idsOf(undefined), run, session });
    await expect.poll(() => at.began.get(session as SessionId)?.aborted, { timeout: STORE_WAIT_MS }).toBe(true);
    expect((await receipt).status).toBe(status >= 500 ? status : 200);
  });
});
