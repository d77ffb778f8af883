// Ten tabs of a real Chromium that follow fifty runs each over one connection, and wait for the outcome of each.
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { openBelay } from "../../src/sdk/belay.ts";
import { chromiumPath, openBrowser } from "../fixtures/browser.ts";
import { clientPages, openPage, withoutWebSockets } from "../fixtures/browser-client.ts";
import { agent } from "../fixtures/obedient-agent.ts";
import { realServer } from "../fixtures/real-server.ts";

const TABS = 10;
const RUNS = 50;

const timeout = 120_000;

async function watching(webSockets: "some" | "none") {
  const browser = await openBrowser();
  onTestFinished(() => browser.close());
  const belay = await openBelay({ agent, store: ":memory:", graceMs: 50, liveRunsMax: 2 * TABS * RUNS });
  const server = await realServer(belay, 0, clientPages);
  onTestFinished(async () => {
    await server.close();
    await belay.close({ mode: "cancel" });
  });
  if (webSockets === "none") await withoutWebSockets(browser.context);
  const tabs: Page[] = [];
  for (let index = 0; index < TABS; index += 1) tabs.push(await openPage(browser.context, server.url));
  const watch = `Promise.all(Array.from({ length: ${RUNS} }, () => belay.watchRun("wait")))`;
  for (const tab of tabs) await tab.evaluate(watch);
  return { belay, server, tabs };
}

describe
  .runIf(chromiumPath() !== undefined)
  .each([["over a WebSocket", "some"] as const, ["without WebSockets", "none"] as const])("%s", (_, how) => {
  test("G40: none of their requests is refused, a stop arrives, and every outcome comes", { timeout }, async () => {
    const { belay, server, tabs } = await watching(how);
    const receipt = await tabs[0]?.evaluate("belay.watchRun('wait').then((id) => belay.client.cancel(id))");
    expect(receipt).toMatchObject({ kind: "stopping" });
    await belay.cancelAll();
    for (const tab of tabs) await tab.waitForFunction(`belay.ended.size >= ${RUNS}`);
    expect(server.statuses.get(429)).toBeUndefined();
  });

  test("G30: each run is followed without a gap, and every outcome comes, over a restart", { timeout }, async () => {
    const { belay, server, tabs } = await watching(how);
    await server.close();
    const again = await realServer(belay, Number(new URL(server.url).port));
    onTestFinished(() => again.close());
    await belay.cancelAll();
    for (const tab of tabs) {
      const isOver = `belay.ended.size === ${RUNS} && Object.keys(belay.followed).length === ${RUNS}`;
      await tab.waitForFunction(isOver, undefined, { timeout });
      const followed = (await tab.evaluate("belay.followed")) as Readonly<Record<string, readonly number[]>>;
      for (const [id, positions] of Object.entries(followed)) {
        const events = await Array.fromAsync(await belay.run(id));
        expect(positions).toEqual(events.flatMap((event) => ("seq" in event ? [event.seq] : [])));
      }
    }
  });
});
