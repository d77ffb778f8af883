// The stop button in a real Chromium, which has six connections to a server and shares them between its tabs.
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Agent } from "../../src/ports/agent.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { chromiumPath, openBrowser, type TestBrowser } from "../fixtures/browser.ts";
import { clientPages, openPage, withoutWebSockets } from "../fixtures/browser-client.ts";
import { heldAcceptance } from "../fixtures/held-acceptance.ts";
import { agent as obedientAgent } from "../fixtures/obedient-agent.ts";
import { type RealServer, realServer } from "../fixtures/real-server.ts";

interface Opened {
  readonly server: RealServer;
  readonly belay: Awaited<ReturnType<typeof openBelay>>;
  /** From now on no prompt is accepted until the test is over. */
  hold(): void;
  page(): Promise<Page>;
}

/** A watched run holds no connection for less than this: a stop that waited for one would come too late. */
const timeout = 20_000;

describe.runIf(chromiumPath() !== undefined)("a stop in a real Chromium", () => {
  let browser: TestBrowser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser.close());

  async function opened(webSockets?: "none"): Promise<Opened> {
    const held = Promise.withResolvers<void>();
    // One that works on although it is stopped, until the test is over.
    const agent: Agent = (turn) => (turn.prompt.text === "hold" ? held.promise : obedientAgent(turn));
    const { store, hold, release } = heldAcceptance();
    const belay = await openBelay({ agent, store, graceMs: 60_000, liveRunsMax: 100 });
    const server = await realServer(belay, 0, clientPages);
    const own = await browser.context.browser()?.newContext();
    if (own === undefined) throw new Error("The browser opens no more contexts.");
    if (webSockets === "none") await withoutWebSockets(own);
    onTestFinished(async () => {
      held.resolve();
      release();
      await own.close();
      await server.close();
      await belay.close({ mode: "cancel" });
    });
    return { server, belay, hold, page: () => openPage(own, server.url) };
  }

  describe.each([["over a WebSocket", undefined] as const, ["without WebSockets", "none"] as const])("%s", (_, how) => {
    test.each([3, 6, 50])("G40: a run is stopped while %i are watched", { timeout }, async (count) => {
      const { belay, page } = await opened(how);
      const tab = await page();
      const runs = await tab.evaluate(
        `Promise.all(Array.from({ length: ${count} }, () => belay.watchRun("wait")))` as string,
      );
      const [first] = runs as readonly string[];
      const receipt = await tab.evaluate(`belay.client.cancel(${JSON.stringify(first)})`);
      expect(receipt).toMatchObject({ kind: "stopping", first: true });
      await expect((await belay.run(first ?? "")).outcome).resolves.toMatchObject({ kind: "cancelled" });
    });

    test("G40: seven tabs watch a session, and an eighth stops it", { timeout }, async () => {
      const { belay, page } = await opened(how);
      const session = await belay.createSession();
      session.prompt("wait");
      for (let tab = 0; tab < 7; tab += 1) await (await page()).evaluate(`belay.watchSession("${session.id}")`);
      const eighth = await page();
      const receipt = await eighth.evaluate(`belay.client.session("${session.id}").cancel()`);
      expect(receipt).toMatchObject({ kind: "stopping" });
    });

    test("G40: three tabs have 24 prompts each without an answer, and a stop of a session arrives", {
      timeout,
    }, async () => {
      const { belay, hold, page } = await opened(how);
      const session = await belay.createSession();
      await session.prompt("wait").accepted;
      const tabs = [await page(), await page(), await page()];
      hold();
      for (const tab of tabs) {
        await tab.evaluate(`(() => {
          for (let count = 0; count < 24; count += 1) belay.client.prompt("wait").accepted.catch(() => {});
        })()`);
      }
      const receipt = await tabs[2]?.evaluate(`belay.client.session("${session.id}").cancel()`);
      expect(receipt).toMatchObject({ kind: "stopping" });
    });

    test("G40: eight stops that wait for their ends leave room for a ninth", { timeout }, async () => {
      const { page } = await opened(how);
      const tab = await page();
      const receipt = await tab.evaluate(`(async () => {
        const ids = await Promise.all(Array.from({ length: 9 }, () => belay.watchRun("hold")));
        for (const id of ids.slice(1)) void belay.client.cancel(id, { waitMs: 60000 }).catch(() => {});
        return belay.client.cancel(ids[0]);
      })()`);
      expect(receipt).toMatchObject({ kind: "stopping" });
    });

    test("G30: three tabs hear every event once while the server restarts", { timeout: 60_000 }, async () => {
      const { belay, server, page } = await opened(how);
      const session = await belay.createSession();
      const tabs = [await page(), await page(), await page()];
      await session.prompt("say one").outcome;
      for (const tab of tabs) await tab.evaluate(`belay.watchSession("${session.id}")`);
      await server.close();
      await session.prompt("say two").outcome;
      const again = await realServer(belay, Number(new URL(server.url).port));
      onTestFinished(() => again.close());
      await session.prompt("say three").outcome;
      await contiguous(tabs, session.id, (await session.row()).head);
    });
  });

  test("G30: a tab that held the stream for others is closed, and they hear every event once", {
    timeout: 60_000,
  }, async () => {
    const { belay, page } = await opened("none");
    const session = await belay.createSession();
    const [leader, ...others] = [await page(), await page(), await page()];
    for (const tab of [leader, ...others]) await tab?.evaluate(`belay.watchSession("${session.id}")`);
    await session.prompt("say one").outcome;
    await leader?.close();
    await session.prompt("say two").outcome;
    await contiguous(others, session.id, (await session.row()).head);
    expect(others).toHaveLength(2);
  });
});

/** Every tab has heard all positions, each once and in order. */
async function contiguous(tabs: readonly Page[], session: string, head: number): Promise<void> {
  for (const tab of tabs) {
    await tab.waitForFunction(`belay.heard("${session}", ${head})`);
    expect(await tab.evaluate(`belay.seen["${session}"]`)).toEqual(
      Array.from({ length: head }, (_, index) => index + 1),
    );
  }
}
