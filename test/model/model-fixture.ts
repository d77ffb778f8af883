// What the tests of the whole road share: Belay over a model of a real provider package, over real sockets.
import { expect } from "vitest";
import { z } from "zod";
import { type ModelAgentOptions, modelAgent, tool } from "../../src/agent/index.ts";
import { verifyAtRest } from "../../src/core/read/verify.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import type { BelayOptions } from "../../src/sdk/belay-options.ts";
import type { RunHandle } from "../../src/sdk/run.ts";
import type { Session } from "../../src/sdk/session.ts";
import { logOf } from "../fixtures/belay.ts";
import { type ModelName, modelsAt } from "../fixtures/provider/models.ts";
import type { ProviderServer } from "../fixtures/provider/server.ts";

export interface ModelFixture extends AsyncDisposable {
  readonly belay: Belay;
  readonly session: Session;
}

/** `read` answers at once, `wait` until it is stopped. */
export const tools = {
  read: tool({
    description: "Reads a file.",
    input: z.object({ path: z.string() }),
    execute: ({ path }) => `contents of ${path}`,
  }),
  wait: tool({
    description: "Waits.",
    input: z.object({}),
    execute: (_, { signal, partial }) => {
      partial("waited a little");
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    },
  }),
};

export async function openModelFixture(
  place: { readonly baseURL: string },
  name: ModelName,
  options: Partial<ModelAgentOptions & Pick<BelayOptions, "clock" | "store">> = {},
): Promise<ModelFixture> {
  const { clock, store = ":memory:", ...rest } = options;
  const agent = modelAgent({ model: modelsAt(place.baseURL)[name], system: "Be brief.", tools, ...rest });
  const belay = await openBelay({ agent, store, ...(clock === undefined ? {} : { clock }) });
  const session = await belay.createSession();
  return { belay, session, [Symbol.asyncDispose]: async () => void (await belay.close({ mode: "cancel" })) };
}

/** Cancels the run of a request whose answer the provider holds back: only the stop can close its socket. */
export async function cancelAndWatch(run: RunHandle, closed: Promise<number>): Promise<void> {
  const receipt = run.cancel({ reason: { kind: "user", by: "alice", note: "enough" } });
  expect(await closed).toBeTypeOf("number");
  expect(await receipt).toMatchObject({ kind: "stopping", first: true });
}

/** One outcome, and a log without findings. */
export async function checkLog(session: Session, run: RunHandle): Promise<void> {
  const events = await logOf(session);
  expect(verifyAtRest(events)).toEqual([]);
  const outcomes = events.filter((event) => event.type === "run.settled" && event.runId === run.id);
  expect(outcomes.length).toBe(1);
}

/** The next request of the session: the provider's own rules accept the conversation as the stop has left it. */
export async function goesOn(server: ProviderServer, session: Session): Promise<string> {
  server.add([{ text: "Fine." }]);
  const run = session.prompt("and now?");
  expect(await run.outcome).toEqual({ kind: "completed" });
  expect(await run.text()).toBe("Fine.");
  expect(server.violations).toEqual([]);
  return JSON.stringify(server.requests.at(-1)?.body);
}
