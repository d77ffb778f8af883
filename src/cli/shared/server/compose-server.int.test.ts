import { writeFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { emptyHome } from "../../../../test/fixtures/empty-data-dir.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { openLog } from "../../../telemetry/log.ts";
import { redactor } from "../../../telemetry/redactor.ts";
import { composeServer } from "./compose-server.ts";
import { makePlan } from "./runtime.ts";

const log = openLog({
  redact: redactor(),
  clock: systemClock,
  stream: { write: () => true, on: () => undefined, writableLength: 0 },
});

/** The gate that the agent's module stands at while it is loaded. */
interface Gate {
  readonly reached: PromiseWithResolvers<void>;
  readonly opened: PromiseWithResolvers<void>;
}

const AT_THE_GATE = `
const { reached, opened } = globalThis.serveHouseGate;
reached.resolve();
await opened.promise;
export const agent = async () => ({ text: "" });
`;

async function ask(socketPath: string, path: string): Promise<{ readonly status?: number; readonly body: unknown }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status?: number; body: unknown }>();
  get({ socketPath, path, agent: false, headers: { host: "localhost" } }, async (answer) => {
    const body: unknown = JSON.parse(await text(answer));
    resolve({ ...(answer.statusCode === undefined ? {} : { status: answer.statusCode }), body });
  }).on("error", reject);
  return promise;
}

test("whoever asks while it starts is told that, and not that the store did not answer", async () => {
  const gate: Gate = { reached: Promise.withResolvers(), opened: Promise.withResolvers() };
  Object.assign(globalThis, { serveHouseGate: gate });
  onTestFinished(() => void Reflect.deleteProperty(globalThis, "serveHouseGate"));
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
      hint: expect.stringMatching(/^It opens its store.* Send it again in a second/),
    },
  });
  gate.opened.resolve();
  const house = await opening;
  expect((await ask(home.socketFile ?? "", "/v1/status")).status).toBe(200);
  await house.close({ mode: "park", limitMs: 1_000 });
});
