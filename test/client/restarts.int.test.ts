// A server that is shut down and started again, three times, while clients wait: every promise of theirs resolves.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { connectBelay } from "../../src/client/belay-client.ts";
import { PAUSE_LAST_MS } from "../../src/client/limits.ts";
import { openBelay } from "../../src/index.ts";
import type { Agent, Execute } from "../../src/ports/agent.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { untilAborted } from "../fixtures/belay.ts";
import { realServer } from "../fixtures/real-server.ts";

const folder = mkdtempSync(join(tmpdir(), "belay-restarts-"));
afterAll(() => rmSync(folder, { recursive: true }));

const RESTARTS = 3;

/** Pauses between attempts take no time. */
const hasty: Clock = {
  ...systemClock,
  after: (ms, call, kind) => systemClock.after(ms <= PAUSE_LAST_MS ? 0 : ms, call, kind),
};

test("G25: clients that wait over three restarts get their outcomes, events and receipts", {
  timeout: 60_000,
}, async () => {
  const store = join(folder, "belay.db");
  let life = 0;
  let began = Promise.withResolvers<void>();
  // Goes on after its call was parked, as the simplest agents do; only the last life lets the call finish.
  const agent: Agent = async (turn) => {
    const work: Execute = ({ signal }) => {
      began.resolve();
      return life < RESTARTS ? untilAborted(signal) : "done";
    };
    const { kind } = await turn.call("work", null, work, { idempotent: true });
    return kind;
  };
  const open = async (port?: number) => {
    const belay = await openBelay({ store, agent, graceMs: 200, loopWatch: "off" });
    return { belay, server: await realServer(belay, port) };
  };
  let { belay, server } = await open();
  const { url, token } = server;
  const client = await connectBelay({ url, token, clock: hasty });
  const session = await client.createSession();
  const live = session.prompt("live");
  const queued = session.prompt("queued");
  const types: string[] = [];
  const followed = (async () => {
    for await (const event of live) if ("seq" in event) types.push(event.type);
  })();
  const waiting = [live.outcome, queued.outcome];
  await Promise.all([live.accepted, queued.accepted]);
  while (life < RESTARTS) {
    await began.promise;
    await Promise.all([belay.close(), server.close()]);
    began = Promise.withResolvers();
    life += 1;
    ({ belay, server } = await open(Number(new URL(url).port)));
  }
  expect(await Promise.all(waiting)).toEqual([{ kind: "completed" }, { kind: "completed" }]);
  await followed;
  expect(types.filter((type) => type === "run.parked")).toHaveLength(RESTARTS);
  expect(types.filter((type) => type === "run.settled")).toHaveLength(1);
  expect(await live.cancel()).toMatchObject({ kind: "settled" });
  await client.close();
  await server.close();
  await belay.close();
});
