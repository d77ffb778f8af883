// A browser has six connections to a server. Whatever else waits for answers, a stop finds its way.
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { connectBelay } from "../../src/client/belay-client.ts";
import type { BelayControl } from "../../src/ports/control.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { until } from "../fixtures/connected-client.ts";
import { withConnections } from "../fixtures/few-connections.ts";
import { heldAcceptance } from "../fixtures/held-acceptance.ts";
import { agent } from "../fixtures/obedient-agent.ts";
import { realServer } from "../fixtures/real-server.ts";

afterEach(() => vi.unstubAllGlobals());

/** A server that accepts no prompt until the gate is open, and a client of it that has six connections. */
async function opened(streams?: "shared" | "separate") {
  const { store, hold, release } = heldAcceptance();
  const belay = await openBelay({ store, agent, graceMs: 50, liveRunsMax: 100 });
  const server = await realServer(belay);
  const fetch = withConnections(6);
  const { url, token } = server;
  const control = await connectBelay({ url, token, fetch, ...(streams === undefined ? {} : { streams }) });
  onTestFinished(async () => {
    release();
    await control.close();
    await server.close();
    await belay.close({ mode: "cancel" });
  });
  const session = await belay.createSession();
  const run = session.prompt("wait", { key: "k" });
  await run.accepted;
  return {
    ...{ belay, control, fetch, session: session.id, run: run.id },
    /** Sends prompts to sessions of their own, none of which is answered. */
    crowd: async (): Promise<void> => {
      hold();
      for (let count = 0; count < 24; count += 1) control.prompt("wait").accepted.catch(() => {});
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

type Stop = (control: BelayControl, session: string, run: string) => Promise<unknown>;

const STOPS: Readonly<Record<string, Stop>> = {
  "session.cancel()": (control, session) => control.session(session).cancel(),
  "cancel() of a run": (control, _, run) => control.cancel(run),
  "session.cancelPrompt()": (control, session) => control.session(session).cancelPrompt("k"),
  "cancelAll()": (control) => control.cancelAll(),
  "session.close()": (control, session) => control.session(session).close(),
  "session.delete()": (control, session) => control.session(session).delete(),
};

test.each(Object.entries(STOPS))("G40: 24 prompts have no answer, and %s arrives", async (_, stop) => {
  const { belay, control, crowd, session, run } = await opened("shared");
  const { outcome } = await belay.run(run);
  await crowd();
  stop(control, session, run).catch(() => {});
  await expect(outcome).resolves.toMatchObject({ kind: "cancelled" });
});

test("with a connection for each request, the same stop waits behind them", async () => {
  const { control, fetch, crowd, session } = await opened("separate");
  await crowd();
  control
    .session(session)
    .cancel()
    .catch(() => {});
  await until(() => fetch.waiting().includes(`POST /v1/sessions/${session}/cancel`));
});

test("in a page, a client with a custom `fetch` shares a connection too", async () => {
  vi.stubGlobal("location", { origin: "http://localhost" });
  vi.stubGlobal("BroadcastChannel", undefined);
  const { belay, control, crowd, session, run } = await opened();
  const { outcome } = await belay.run(run);
  await crowd();
  control
    .session(session)
    .cancel()
    .catch(() => {});
  await expect(outcome).resolves.toMatchObject({ kind: "cancelled" });
});
