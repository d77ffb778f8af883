// A prompt whose answer is lost, and a proxy that answers 502 or 503 from then on: no stop says that nothing was there.
import { expect, test } from "vitest";
import { connectBelay } from "../../src/client/belay-client.ts";
import type { BelayControl, RunControl } from "../../src/ports/control.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { inMemoryServer } from "../fixtures/in-memory-server.ts";

type Stop = (control: BelayControl, run: RunControl, session: string) => Promise<unknown>;

const STOPS: Readonly<Record<string, Stop>> = {
  "session.cancel()": (control, _, session) => control.session(session).cancel(),
  "cancelAll()": (control) => control.cancelAll(),
  "run.cancel()": (_, run) => run.cancel(),
};

const cells = Object.keys(STOPS).flatMap((name) =>
  [502, 503].flatMap((status) =>
    (["in its tick", "after the prompt has failed"] as const).flatMap((when) =>
      [false, true].map((own) => [name, status, when, own] as const),
    ),
  ),
);

test.each(cells.filter(([name, , , own]) => !(own && name === "session.cancel()")))(
  "G7: after a lost answer, %s with %i, %s, is carried out (own session: %s)",
  async (name, status, when, own) => {
    const belay = await openBelay({
      store: ":memory:",
      graceMs: 50,
      agent: ({ signal }) => new Promise((_, no) => signal.addEventListener("abort", no)),
    });
    const server = inMemoryServer(belay);
    let prompts = 0;
    const control = await connectBelay({
      ...{ url: server.url, token: server.token, patienceMs: 0 },
      fetch: async (url, init) => {
        if (!url.endsWith("/runs")) return server.fetch(url, init);
        prompts += 1;
        // The first one is accepted, and its answer is a page of the proxy.
        if (prompts === 1) await server.fetch(url, init);
        return new Response("<h1>Bad gateway</h1>", { status });
      },
    });
    const session = await control.createSession();
    const run = own ? control.prompt("work", { key: "k" }) : session.prompt("work", { key: "k" });
    const failed = expect(run.accepted).rejects.toMatchObject({ code: "unavailable" });
    if (when === "after the prompt has failed") await failed;
    const receipt = await STOPS[name]?.(control, run, session.id);
    await failed;
    expect(JSON.stringify(receipt)).toMatch(/withdrawn|stopping/);
    const sessions = await belay.sessions();
    const sessionId = own ? sessions.find(({ id }) => id !== session.id)?.id : session.id;
    const [row] = await belay.session(sessionId ?? "").runs();
    expect((await (await belay.run(row?.id ?? "")).outcome).kind).toBe("cancelled");
    await control.close();
    await belay.close({ mode: "cancel" });
  },
);
