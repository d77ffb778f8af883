// A store file that is removed, replaced, renamed or linked, or loses its lock, and an in-memory server over it.
import { copyFileSync, linkSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { isMutation } from "../../src/http/routes/route.ts";
import { type RouteName, routeOf } from "../../src/http/routes/routes.ts";
import { type Actor, fetchBelay, type Mounted } from "../../src/http/serve.ts";
import { TOKEN_SCOPES } from "../../src/http/transport/http-exchange.ts";
import type { Turn } from "../../src/ports/agent.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { bodyOf, type idsOf, pathOf } from "./samples.ts";

type Lost = (file: string, directory: string) => void;

/** `takes`: which requests are still accepted and recorded. */
export const FAULTS: Readonly<Record<string, { readonly lose: Lost; readonly takes: "nothing" | "ends" | "all" }>> = {
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

/** Their responses do not end as long as the server runs. */
export const STREAMS = /events|output\/stream/;

const owner: Actor = { name: "owner", scopes: new Set(TOKEN_SCOPES), tenant: undefined };

interface Served {
  readonly belay: Belay;
  readonly mounted: Mounted;
  readonly file: string;
  readonly directory: string;
  /** The signal of the first turn, once it has begun. */
  readonly began: Promise<AbortSignal>;
}

export async function served(): Promise<Served> {
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

export async function ask({ mounted }: Served, name: RouteName, ids: ReturnType<typeof idsOf>): Promise<number> {
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
