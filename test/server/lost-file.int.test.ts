// G28: a store file that is removed alone or with its directory, replaced, renamed or linked, or loses its lock, under
// a server. For every route of the table: the request is answered, no change is acknowledged that is not in the file,
// and no fault of Belay's is reported.
import { copyFileSync, linkSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { isMutation } from "../../src/http/routes/route.ts";
import { ROUTE_NAMES, type RouteName, routeOf } from "../../src/http/routes/routes.ts";
import { type Actor, fetchBelay, type Mounted } from "../../src/http/serve.ts";
import { TOKEN_SCOPES } from "../../src/http/transport/http-exchange.ts";
import type { Turn } from "../../src/ports/agent.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { bodyOf, idsOf, pathOf } from "./samples.ts";

type Lost = (file: string, directory: string) => void;

/** Whether new work is refused, and whether anything at all is written. */
const FAULTS: Readonly<Record<string, { readonly lose: Lost; readonly takes: "nothing" | "ends" | "all" }>> = {
  removed: {
    lose: (file) => ["", "-wal", "-shm"].forEach((end) => void rmSync(`${file}${end}`)),
    takes: "nothing",
  },
  replaced: {
    lose: (file) => {
      copyFileSync(file, `${file}.copy`);
      renameSync(`${file}.copy`, file);
    },
    takes: "nothing",
  },
  "in a renamed directory": {
    lose: (_, directory) => {
      renameSync(directory, `${directory}-away`);
      mkdirSync(directory);
    },
    takes: "nothing",
  },
  "in a removed directory": { lose: (_, directory) => rmSync(directory, { recursive: true }), takes: "nothing" },
  linked: { lose: (file) => linkSync(file, `${file}.link`), takes: "ends" },
  "without its lock": { lose: (file) => rmSync(`${file}.lock`), takes: "all" },
};

/** Routes that begin something: refused as long as the file cannot be trusted. */
const BEGINNINGS: ReadonlySet<string> = new Set(["createSession", "beginRun", "promptSession"]);

/** Stops and answers of what does not exist here: there is nothing to write. */
const WRITES_NOTHING: ReadonlySet<string> = new Set([
  "cancelBegun",
  "cancelCall",
  "cancelProcess",
  "cancelQuestion",
  "cancelSessionCall",
  "answerQuestion",
]);

/** They answer as long as the server lives. */
const STREAMS = /events|output\/stream/;

const owner: Actor = { name: "owner", scopes: new Set(TOKEN_SCOPES), tenant: undefined };

interface Served {
  readonly belay: Belay;
  readonly mounted: Mounted;
  readonly file: string;
  readonly directory: string;
  /** The signal of the first turn, once it has begun. */
  readonly began: Promise<AbortSignal>;
}

async function served(): Promise<Served> {
  const directory = mkdtempSync(join(tmpdir(), "belay-lost-"));
  const file = join(directory, "belay.db");
  const { promise: began, resolve } = Promise.withResolvers<AbortSignal>();
  const agent = ({ signal }: Turn): Promise<string> => {
    resolve(signal);
    return untilStopped(signal);
  };
  const belay = await openBelay({ store: file, agent, graceMs: 50 });
  const mounted = fetchBelay(belay, { tokens: () => owner, hosts: ["belay.test"] });
  onTestFinished(async () => {
    await mounted.close();
    await belay.close({ mode: "cancel", limitMs: 200 }).catch(() => undefined);
    for (const end of ["", "-away"]) rmSync(`${directory}${end}`, { recursive: true, force: true });
  });
  return { belay, mounted, file, directory, began };
}

const untilStopped = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve("stopped")));

async function ask({ mounted }: Served, name: RouteName, ids: ReturnType<typeof idsOf>): Promise<number> {
  const route = routeOf(name);
  const body = bodyOf(route);
  const headers = { authorization: "Bearer x", "content-type": "application/json" };
  const keyed = isMutation(route) ? { ...headers, "idempotency-key": `key of ${name}` } : headers;
  const url = `https://belay.test${pathOf(route, ids)}`;
  const sent = { method: route.method, headers: keyed, ...(body === undefined ? {} : { body }) };
  const answer = await mounted.fetch(new Request(url, sent));
  const isStream = answer.headers.get("content-type")?.includes("event-stream") === true;
  const text = isStream ? "" : await answer.text();
  if (isStream) await answer.body?.cancel();
  expect(text, name).not.toContain('"code":"internal"');
  return answer.status;
}

describe.each(Object.entries(FAULTS))("G28: a store file %s", (_, { lose, takes }) => {
  test(`close() ${takes === "nothing" ? "reports it" : "closes it"}`, async () => {
    const { belay, file, directory } = await served();
    await belay.createSession();
    lose(file, directory);
    const code = await belay.close().then(
      () => "closed",
      (error: { readonly code: string }) => error.code,
    );
    expect(code).toBe(takes === "nothing" ? "store_corrupt" : "closed");
  });

  test("every route is answered, and nothing new is acknowledged that would be lost", { timeout: 60_000 }, async () => {
    const at = await served();
    const session = await at.belay.createSession();
    const run = session.prompt("wait");
    const { runId } = await run.accepted;
    lose(at.file, at.directory);
    const ids = { ...idsOf(undefined), session: session.id, run: runId };
    const names = ROUTE_NAMES.filter((one) => !STREAMS.test(routeOf(one).path));
    // Beginnings first: a session that was closed by its route would refuse them for that reason.
    for (const name of names.toSorted((a, b) => Number(BEGINNINGS.has(b)) - Number(BEGINNINGS.has(a)))) {
      const status = await ask(at, name, ids);
      if (BEGINNINGS.has(name) && takes !== "all") expect({ name, status }).toEqual({ name, status: refusal(takes) });
      const isAcknowledged = isMutation(routeOf(name)) && status < 300 && takes === "nothing";
      if (isAcknowledged) expect(WRITES_NOTHING).toContain(name);
    }
    expect((await at.belay.status()).trouble).toBe(
      { nothing: "store_corrupt", ends: "store_locked", all: undefined }[takes],
    );
  });

  test("streams that were open before end or stay, and can be left", { timeout: 30_000 }, async () => {
    const at = await served();
    const session = await at.belay.createSession();
    const run = session.prompt("wait");
    const { runId } = await run.accepted;
    const child = await session.processes.start("sleep 600");
    const ids = { ...idsOf(undefined), session: session.id, run: runId, process: child.id };
    const names = ROUTE_NAMES.filter((one) => STREAMS.test(routeOf(one).path));
    const open = async (name: RouteName): Promise<readonly [RouteName, Response]> => {
      const headers = { authorization: "Bearer x", accept: "text/event-stream" };
      const request = new Request(`https://belay.test${pathOf(routeOf(name), ids)}`, { headers });
      return [name, await at.mounted.fetch(request)];
    };
    const before = await Promise.all(names.map(open));
    lose(at.file, at.directory);
    const after = await Promise.all(names.map(open));
    expect(before.map(([name, { status }]) => [name, status])).toEqual(names.map((name) => [name, 200]));
    for (const [name, { status }] of after) expect({ name, isFault: status === 500 }).toEqual({ name, isFault: false });
    await child.cancel().catch(() => undefined);
    // Whatever they wait for, they end with the client.
    for (const [, { body }] of [...before, ...after]) await body?.cancel();
  });

  test("a stop is carried out, whether or not it can be recorded", { timeout: 30_000 }, async () => {
    const at = await served();
    const session = await at.belay.createSession();
    const run = session.prompt("wait");
    await run.accepted;
    const began = await at.began;
    lose(at.file, at.directory);
    const receipt = run.cancel({ waitMs: 0 }).then(
      ({ kind }) => kind as string,
      (error: { readonly code: string }) => error.code,
    );
    expect(await receipt).toBe(takes === "nothing" ? "store_corrupt" : "stopping");
    expect(began.aborted).toBe(true);
  });
});

const refusal = (takes: "nothing" | "ends"): number => (takes === "nothing" ? 500 : 503);
