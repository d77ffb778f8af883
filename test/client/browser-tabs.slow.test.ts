// Ten tabs of a real Chromium that watch fifty runs each over one connection, and wait for the outcome of each.
import { expect, onTestFinished, test } from "vitest";
import { openBelay } from "../../src/sdk/belay.ts";
import { openBrowser } from "../fixtures/browser.ts";
import { clientPages, openPage, withoutWebSockets } from "../fixtures/browser-client.ts";
import { agent } from "../fixtures/obedient-agent.ts";
import { realServer } from "../fixtures/real-server.ts";

const TABS = 10;
const RUNS = 50;

const timeout = 120_000;

test("G40: without WebSockets none of their requests is refused, a stop arrives, and every outcome comes", {
  timeout,
}, async () => {
  const browser = await openBrowser();
  onTestFinished(() => browser.close());
  const belay = await openBelay({ agent, store: ":memory:", graceMs: 50, liveRunsMax: 2 * TABS * RUNS });
  const server = await realServer(belay, 0, clientPages);
  onTestFinished(async () => {
    await server.close();
    await belay.close({ mode: "cancel" });
  });
  await withoutWebSockets(browser.context);
  const tabs = [];
  for (let index = 0; index < TABS; index += 1) tabs.push(await openPage(browser.context, server.url));
  const watch = `Promise.all(Array.from({ length: ${RUNS} }, () => belay.watchRun("wait")))`;
  for (const tab of tabs) await tab.evaluate(watch);
  const [first] = tabs;
  const receipt = await first?.evaluate("belay.watchRun('wait').then((id) => belay.client.cancel(id))");
  expect(receipt).toMatchObject({ kind: "stopping" });
  await belay.cancelAll();
  for (const tab of tabs) await tab.waitForFunction(`belay.ended.size >= ${RUNS}`);
  expect(server.statuses.get(429)).toBeUndefined();
});
