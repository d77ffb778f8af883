import { writeFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { emptyHome } from "../../../../test/fixtures/empty-data-dir.ts";
import type { Mechanism } from "../../../ports/spawner.ts";
import { systemClock } from "../../../system/system-clock.ts";
import type { AuditRecord } from "../../../telemetry/audit/audit-record.ts";
import { openLog } from "../../../telemetry/log.ts";
import { redactor } from "../../../telemetry/redactor.ts";
import { type ComposedServer, composeServer } from "./compose-server.ts";
import { makePlan } from "./runtime.ts";

const log = openLog({
  redact: redactor(),
  clock: systemClock,
  stream: { write: () => true, on: () => undefined, writableLength: 0 },
});

/** Blocks the loading of the agent's module. */
interface Gate {
  readonly reached: PromiseWithResolvers<void>;
  readonly opened: PromiseWithResolvers<void>;
}

const AT_THE_GATE = `
const { reached, opened } = globalThis.composeServerGate;
reached.resolve();
await opened.promise;
export const agent = async () => ({ text: "" });
`;

async function request(socketPath: string, path: string): Promise<{ readonly status: number; readonly body: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  get({ socketPath, path, agent: false, headers: { host: "localhost" } }, async (answer) => {
    resolve({ status: answer.statusCode ?? 0, body: await text(answer) });
  }).on("error", reject);
  return promise;
}

async function ask(socketPath: string, path: string): Promise<{ readonly status: number; readonly body: unknown }> {
  const { status, body } = await request(socketPath, path);
  return { status, body: JSON.parse(body) };
}

const read = async (socketPath: string, path: string): Promise<string> => (await request(socketPath, path)).body;

test("a request during the start gets 503 `The server is starting`, not a store error", async () => {
  const gate: Gate = { reached: Promise.withResolvers(), opened: Promise.withResolvers() };
  Object.assign(globalThis, { composeServerGate: gate });
  onTestFinished(() => void Reflect.deleteProperty(globalThis, "composeServerGate"));
  const home = emptyHome();
  const module = join(home.dir, "agent.mjs");
  writeFileSync(module, AT_THE_GATE);
  const plan = await makePlan({ home, flags: { agent: module, store: ":memory:", config: false } });
  const opening = composeServer({ plan, tcp: false, log, redact: redactor(), version: "0" });
  await gate.reached.promise;
  const { status, body } = await ask(home.socketFile ?? "", "/v1/status");
  expect(status).toBe(503);
  expect(body).toMatchObject({
    error: {
      ...{ code: "unavailable", message: "The server is starting.", retryable: true },
      hint: expect.stringMatching(/^It opens its store.* Send the request again in a second/),
    },
  });
  gate.opened.resolve();
  const server = await opening;
  expect((await ask(home.socketFile ?? "", "/v1/status")).status).toBe(200);
  await server.close({ mode: "park", limitMs: 1_000 });
});

const COMMANDS = `
export const agent = async (turn) => {
  const { id } = await turn.processes.start("true", { feedback: "silent" });
  await (await turn.processes.get(id)).wait();
  return "done";
};
`;

test("G20: the audit trail records the tier of each start, and a change of it", async () => {
  const home = emptyHome();
  const agent = join(home.dir, "agent.mjs");
  writeFileSync(agent, COMMANDS);
  const config = join(home.dir, "belay.json");
  const open = async (mechanism: Mechanism, first?: "processes") => {
    writeFileSync(config, JSON.stringify({ processes: { mechanism } }));
    const plan = await makePlan({ home, flags: { agent, config } });
    const begin = first === undefined ? {} : { first };
    return composeServer({ plan, tcp: false, log, redact: redactor(), version: "0", ...begin });
  };
  const starts = async ({ audit }: ComposedServer): Promise<readonly Partial<AuditRecord>[]> =>
    (await audit.read({ limit: 10 })).records
      .filter(({ action }) => action === "start")
      .map(({ answer, note }) => ({
        answer,
        ...(note === undefined ? {} : { note }),
      }));
  // If the first command decides the tier, a second record names it.
  const lazy = await open("group");
  expect(await starts(lazy)).toEqual([{ answer: "started" }]);
  await lazy.runtime.belay.prompt("go").outcome;
  const REACHES = expect.stringContaining("commands of tier group can reach Belay's own files");
  expect(await starts(lazy)).toEqual([{ answer: "tier group", note: REACHES }, { answer: "started" }]);
  await lazy.close({ mode: "park", limitMs: 1_000 });
  const eager = await open("anchor", "processes");
  expect((await starts(eager))[0]).toEqual({
    answer: "tier anchor",
    note: expect.stringMatching(/held by anchor .* at the last start it was group/),
  });
  await eager.close({ mode: "park", limitMs: 1_000 });
});

test("/metrics has the size of the store, the removals by retention, and the resources of the process", async () => {
  const home = emptyHome();
  const agent = join(home.dir, "agent.mjs");
  writeFileSync(agent, 'export const agent = async () => ({ text: "" });');
  const flags = { agent, config: false, retention: "sessions=10" } as const;
  const plan = await makePlan({ home, flags });
  const server = await composeServer({ plan, tcp: false, log, redact: redactor(), version: "0" });
  await server.runtime.belay.prompt("hello").outcome;
  const metrics = await read(server.listeners.socket, "/metrics");
  await server.close({ mode: "park", limitMs: 1_000 });
  const gauge = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(metrics)?.[1]);
  expect(gauge("belay_store_sessions")).toBe(1);
  expect(gauge("belay_store_events")).toBeGreaterThan(4);
  expect(gauge("belay_retention_removed_events")).toBe(0);
  expect(gauge("belay_retention_deleted_sessions")).toBe(0);
  for (const name of ["store_bytes", "process_memory_bytes", "process_heap_bytes", "process_open_files"]) {
    expect(gauge(`belay_${name}`)).toBeGreaterThan(0);
  }
  for (const name of ["store_free_bytes", "loop_delay_seconds"]) {
    expect(gauge(`belay_${name}`)).toBeGreaterThanOrEqual(0);
  }
});
