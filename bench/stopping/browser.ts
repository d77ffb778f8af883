// A stop in a real Chromium, which has six connections to a server for all of its tabs: ten tabs watch fifty runs, and
// one of them stops runs one after the other. The floor is a bare request of the same page to the same server.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBelay } from "../../src/index.ts";
import { openBrowser } from "../../test/fixtures/browser.ts";
import { clientPages, openPage } from "../../test/fixtures/browser-client.ts";
import { agent } from "../../test/fixtures/obedient-agent.ts";
import { realServer } from "../../test/fixtures/real-server.ts";
import { ascending, percentile, round } from "../report.ts";

const TABS = 10;
const RUNS = 50;
const STOPS = 200;

const folder = mkdtempSync(join(tmpdir(), "belay-bench-"));
const belay = await openBelay({ store: join(folder, "browser.db"), agent, liveRunsMax: 2 * RUNS });
const server = await realServer(belay, 0, clientPages);
const browser = await openBrowser();

const STOP = `(async () => {
  const id = await belay.watchRun("wait");
  const from = performance.now();
  const receipt = await belay.client.cancel(id);
  if (receipt.kind !== "stopping") throw new Error(receipt.kind);
  return performance.now() - from;
})()`;

const REQUEST = `(async () => {
  const from = performance.now();
  await (await fetch("/healthz", { cache: "no-store" })).text();
  return performance.now() - from;
})()`;

try {
  const tabs = [];
  for (let index = 0; index < TABS; index += 1) {
    const tab = await openPage(browser.context, server.url);
    await tab.evaluate(`Promise.all(Array.from({ length: ${RUNS / TABS} }, () => belay.watchRun("wait")))`);
    tabs.push(tab);
  }
  const [tab] = tabs;
  if (tab === undefined) throw new Error("No tab was opened.");
  const stops: number[] = [];
  const requests: number[] = [];
  for (let index = 0; index < STOPS; index += 1) {
    stops.push(Number(await tab.evaluate(STOP)));
    requests.push(Number(await tab.evaluate(REQUEST)));
  }
  const of = (values: readonly number[], part: number): number => round(percentile(ascending(values), part));
  const ours = { browserStopP50Ms: of(stops, 0.5), browserStopP99Ms: of(stops, 0.99) };
  const floor = { browserRequestP50Ms: of(requests, 0.5), browserRequestP99Ms: of(requests, 0.99) };
  const ratios = { browserStopOverRequestP50: round(ours.browserStopP50Ms / floor.browserRequestP50Ms) };
  process.stdout.write(JSON.stringify({ ours, floor, ratios }));
} finally {
  await browser.close();
  await server.close();
  await belay.close({ mode: "cancel" });
  rmSync(folder, { recursive: true, force: true });
}
