// One session, a hundred subscribers: how many events a second reach them, against a bare loop over `node:http` that
// writes the same bytes one event at a time. Rounds take turns, so that both meet the same machine.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import type { Agent } from "../../src/index.ts";
import { ascending, percentile, round } from "../report.ts";
import { serve, subscribers } from "./served.ts";

const SUBSCRIBERS = 100;
const CALLS = 1_500;
const ROUNDS = 5;

let go = Promise.withResolvers<void>();

const agent: Agent = async (asked) => {
  await go.promise;
  for (let call = 1; call <= CALLS; call += 1) await asked.call("step", { number: call, of: CALLS }, () => "done");
  return "over";
};

const served = await serve(":memory:", agent);
const session = await served.belay.createSession();
const frames = await captured();
const ours: number[] = [];
const raw: number[] = [];
for (let at = 0; at < ROUNDS; at += 1) {
  raw.push(await rawRound());
  ours.push(await ourRound());
}
await served.close();
const mid = (figures: readonly number[]): number => round(percentile(ascending(figures), 0.5), 0);
console.log(
  JSON.stringify({
    ours: { fanoutDeliveredPerSecond: mid(ours), fanoutSubscribers: SUBSCRIBERS, fanoutEvents: frames.length },
    floor: { rawHttpDeliveredPerSecond: mid(raw) },
    ratios: { fanoutVsRawHttp: round(mid(raw) / mid(ours)) },
  }),
);

async function ourRound(): Promise<number> {
  go = Promise.withResolvers();
  const run = session.prompt("go");
  await run.accepted;
  const path = `/v1/runs/${run.id}/events`;
  const crowd = subscribers(served.port, Array(SUBSCRIBERS).fill(path), "count");
  await crowd.ready;
  const began = performance.now();
  go.resolve();
  await crowd.told;
  return (SUBSCRIBERS * frames.length) / ((performance.now() - began) / 1000);
}

async function rawRound(): Promise<number> {
  const responses: ServerResponse[] = [];
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write("retry: 1000\n\n");
    responses.push(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const crowd = subscribers((server.address() as AddressInfo).port, Array(SUBSCRIBERS).fill("/"), "count");
  await crowd.ready;
  const began = performance.now();
  for (const frame of frames) {
    for (const response of responses) response.write(frame);
    await turn();
  }
  for (const response of responses) response.end();
  await crowd.told;
  const perSecond = (SUBSCRIBERS * frames.length) / ((performance.now() - began) / 1000);
  server.close();
  return perSecond;
}

/** What one subscriber is sent for one run. */
async function captured(): Promise<readonly string[]> {
  go.resolve();
  const run = session.prompt("go");
  const found: string[] = [];
  for await (const event of run) {
    if ("seq" in event) found.push(`id: ${event.seq}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  }
  return found;
}
