// The client and the real server, with a line between them that is cut at random bytes.
import { expect, onTestFinished, test } from "vitest";
import { connectBelay } from "../../src/client/belay-client.ts";
import { PAUSE_LAST_MS } from "../../src/client/limits.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { scriptedAgent } from "../../src/testing/scripted-agent.ts";
import { until } from "../fixtures/connected-client.ts";
import { realServer } from "../fixtures/real-server.ts";
import { cuttingProxy } from "./cutting-proxy.ts";

/** Pauses take no time; what is longer than a pause is left as it is. */
const hasty: Clock = {
  ...systemClock,
  after: (ms, call, kind) => systemClock.after(ms <= PAUSE_LAST_MS ? 0 : ms, call, kind),
};

/** Numbers that look like chance and are the same every time. */
function dice(seed: number): (max: number) => number {
  let state = seed;
  return (max) => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return Math.floor((state / 2 ** 32) * max);
  };
}

/** A server behind a line that is cut, and a client at its end. */
async function house(bytes: () => number | undefined) {
  const agent = scriptedAgent();
  const belay = await openBelay({ agent, store: ":memory:", graceMs: 200 });
  const server = await realServer(belay);
  const proxy = await cuttingProxy(Number(new URL(server.url).port), bytes);
  server.alsoAt(proxy.port);
  const client = await connectBelay({ url: `http://127.0.0.1:${proxy.port}`, token: server.token, clock: hasty });
  onTestFinished(async () => {
    await client.close();
    await proxy.close();
    await server.close();
    await belay.close({ mode: "cancel" });
  });
  return { agent, belay, proxy, client };
}

test("G30: over a line that is cut at random bytes, every fact and every word is heard once", {
  timeout: 60_000,
  meta: { id: "G30/client-survives-random-cuts" },
}, async () => {
  const roll = dice(20_261_115);
  const { agent, belay, proxy, client } = await house(() => 1 + roll(3000));
  const session = await client.createSession();
  const run = session.prompt("count");
  const seqs: number[] = [];
  let said = "";
  const heard = (async () => {
    for await (const event of run) {
      if ("seq" in event) seqs.push(event.seq);
      if (event.type === "delta") said += event.text;
    }
  })();
  let meant = "";
  for (let turnCount = 0; turnCount < 40; turnCount += 1) {
    const turn = await agent.nextTurn();
    for (let piece = 0; piece < 8; piece += 1) {
      const text = `${turnCount}.${piece} née 😀 `;
      meant += text;
      turn.say(text);
      // Deltas are live only: what is said while nobody listens need not be heard, so each is waited for.
      await until(() => said.length >= meant.length);
    }
    if (turnCount < 39) turn.askAgain();
    else turn.complete();
  }
  await heard;
  expect(said).toBe(meant);
  const log = await Array.fromAsync(await belay.run(run.id));
  expect(seqs).toEqual(log.flatMap((event) => ("seq" in event ? [event.seq] : [])));
  expect(await run.outcome).toEqual({ kind: "completed" });
  expect((await run.text({ all: true })).replaceAll("\n\n", "")).toBe(meant);
  expect(proxy.cuts).toBeGreaterThan(50);
});

test("G2, G7: prompts and cancels over such a line are done once each, and every run has one outcome", {
  timeout: 60_000,
  meta: { id: "G2/cut-requests-done-once" },
}, async () => {
  const roll = dice(7);
  // An answer has some 700 bytes: that all attempts of one request are cut must not be left to chance.
  const { agent, belay, proxy, client } = await house(() => 1 + roll(4000));
  const session = await client.createSession();
  const texts = Array.from({ length: 30 }, (_, index) => `prompt ${index}`);
  // Every third is cancelled in the tick in which it is prompted.
  const runs = texts.map((text, index) => {
    const run = session.prompt(text);
    if (index % 3 === 0) void run.cancel();
    return run;
  });
  const driving = (async () => {
    for (;;) {
      const turn = await agent.nextTurn();
      if (Number(turn.given.prompt.text.slice(7)) % 3 !== 0) turn.complete();
      else void turn.cancelled.then(() => turn.endCancelled());
    }
  })();
  const outcomes = await Promise.all(runs.map((run) => run.outcome));
  expect(outcomes.map(({ kind }) => kind)).toEqual(
    texts.map((_, index) => (index % 3 === 0 ? "cancelled" : "completed")),
  );
  const rows = await belay.session(session.id).runs({ limit: 1000 });
  expect(rows.map(({ id }) => id).toReversed()).toEqual(runs.map(({ id }) => id));
  expect(proxy.cuts).toBeGreaterThan(10);
  void driving;
});

test("a server that shuts down and comes back is found again: streams and outcomes go on", {
  meta: { id: "client/reconnects-after-server-restart" },
}, async () => {
  const agent = scriptedAgent();
  const belay = await openBelay({ agent, store: ":memory:", graceMs: 200 });
  const first = await realServer(belay);
  const { url, token } = first;
  const client = await connectBelay({ url, token, clock: hasty });
  const run = (await client.createSession()).prompt("hello");
  const types: string[] = [];
  const heard = (async () => {
    for await (const event of run) if ("seq" in event) types.push(event.type);
  })();
  const { outcome } = run;
  const turn = await agent.nextTurn();
  await until(() => types.includes("turn.requested"));
  await first.close();
  turn.complete("done");
  const second = await realServer(belay, Number(new URL(url).port));
  expect(await outcome).toEqual({ kind: "completed" });
  await heard;
  expect(types).toEqual(["run.accepted", "run.started", "turn.requested", "turn.settled", "run.settled"]);
  await client.close();
  await second.close();
  await belay.close({ mode: "cancel" });
});
