// A stop in a real Chromium, which has six connections to a server for all of its tabs: ten tabs watch fifty runs each,
// and one of them stops runs and sessions one after the other, and then everything. Over a WebSocket, and as behind a
// proxy that lets none through. The floor is a bare request of the same page to the same server.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBelay } from "../../src/index.ts";
import { openBrowser } from "../../test/fixtures/browser.ts";
import { clientPages, openPage, withoutWebSockets } from "../../test/fixtures/browser-client.ts";
import { agent } from "../../test/fixtures/obedient-agent.ts";
import { realServer } from "../../test/fixtures/real-server.ts";
import { ascending, percentile, round } from "../report.ts";

const TABS = 10;
const RUNS = 50;
const STOPS = 200;
const STOPS_OF_ALL = 5;

const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));
const belay = await openBelay({ store: join(folder, "browser.db"), agent, liveRunsMax: 2 * TABS * RUNS });
const server = await realServer(belay, 0, clientPages);
const browser = await openBrowser();

/** Milliseconds until the receipt. */
const timed = (stop: string): string => `(async () => {
  const run = await belay.client.run(await belay.watchRun("wait"));
  const from = performance.now();
  const receipt = await ${stop};
  if (receipt.kind !== "stopping") throw new Error(receipt.kind);
  return performance.now() - from;
})()`;
const STOP_RUN = timed("belay.client.cancel(run.id)");
const STOP_SESSION = timed("belay.client.session(run.sessionId).cancel()");

const STOP_ALL = `(async () => {
  const from = performance.now();
  const covered = await belay.client.cancelAll();
  if (covered.length < ${TABS * RUNS}) throw new Error(String(covered.length));
  return performance.now() - from;
})()`;

const WATCH = `Promise.all(Array.from({ length: ${RUNS} }, () => belay.watchRun("wait")))`;

const REQUEST = `(async () => {
  const from = performance.now();
  await (await fetch("/healthz", { cache: "no-store" })).text();
  return performance.now() - from;
})()`;

/** What it takes in each of the figures, over one kind of connection. */
async function measure(webSockets: "some" | "none") {
  const context = await browser.context.browser()?.newContext();
  if (context === undefined) throw new Error("The browser opens no more contexts.");
  if (webSockets === "none") await withoutWebSockets(context);
  const tabs: Awaited<ReturnType<typeof openPage>>[] = [];
  for (let index = 0; index < TABS; index += 1) tabs.push(await openPage(context, server.url));
  const watch = async (): Promise<void> => {
    for (const tab of tabs) await tab.evaluate(WATCH);
  };
  const [tab] = tabs;
  if (tab === undefined) throw new Error("No tab was opened.");
  await watch();
  const measured = { runs: [] as number[], sessions: [] as number[], requests: [] as number[], all: [] as number[] };
  for (let index = 0; index < STOPS; index += 1) {
    measured.runs.push(Number(await tab.evaluate(STOP_RUN)));
    measured.sessions.push(Number(await tab.evaluate(STOP_SESSION)));
    measured.requests.push(Number(await tab.evaluate(REQUEST)));
  }
  for (let index = 0; index < STOPS_OF_ALL; index += 1) {
    if (index > 0) await watch();
    measured.all.push(Number(await tab.evaluate(STOP_ALL)));
  }
  await context.close();
  return measured;
}

try {
  const { runs, sessions, requests, all } = await measure("some");
  const without = await measure("none");
  const of = (values: readonly number[], part: number): number => round(percentile(ascending(values), part));
  const ours = {
    ...{ browserStopP50Ms: of(runs, 0.5), browserStopP99Ms: of(runs, 0.99) },
    ...{ browserStopSessionP50Ms: of(sessions, 0.5), browserStopSessionP99Ms: of(sessions, 0.99) },
    browserStopAllP50Ms: of(all, 0.5),
    ...{ noSocketStopP50Ms: of(without.runs, 0.5), noSocketStopP99Ms: of(without.runs, 0.99) },
    ...{ noSocketStopSessionP99Ms: of(without.sessions, 0.99), noSocketStopAllP50Ms: of(without.all, 0.5) },
  };
  const floor = { browserRequestP50Ms: of(requests, 0.5), browserRequestP99Ms: of(requests, 0.99) };
  const ratios = { browserStopOverRequestP50: round(ours.browserStopP50Ms / floor.browserRequestP50Ms) };
  process.stdout.write(JSON.stringify({ ours, floor, ratios }));
} finally {
  await browser.close();
  await server.close();
  await belay.close({ mode: "cancel" });
  rmSync(folder, { recursive: true, force: true });
}
