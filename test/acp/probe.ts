// Searches for faults of the ACP agent: seeded random traffic checked against every law, and a few scenarios with one
// correct result. Returns what detected a fault; used to check that a mistake in the source is found.
import { tmpdir } from "node:os";
import type { BelayControl, SessionControl } from "../../src/ports/control.ts";
import { acpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { Gate } from "../../src/testing/gate.ts";
import { settled } from "../../src/testing/manual-clock.ts";
import { brokenLaws } from "./laws.ts";
import { invalidMessages } from "./message-schema.ts";
import { agent, runNoise } from "./noise.ts";
import { notification, RawClient } from "./raw-client.ts";
import { answeredRun, type Version } from "./transcript.ts";

const SEEDS = 40;
const VERSIONS = [1, 2] as const;

export async function probe(progress: (what: string) => void): Promise<string | undefined> {
  const gate = new Gate();
  const reached = new Gate();
  const belay = await openBelay({
    store: ":memory:",
    directories: "any",
    agent: async (turn) => {
      if (turn.prompt.text !== "gate") return agent(turn);
      reached.open();
      const stopped = new Promise<never>((_, reject) => {
        turn.signal.addEventListener("abort", () => reject(turn.signal.reason), { once: true });
      });
      return Promise.race([gate.opened, stopped]);
    },
  });
  const scenarios = [
    () => cancelBefore(belay),
    () => cancelBehind(belay),
    () => lateCancel(belay),
    () => refusedLoad(belay),
    () => disconnect(belay, { gate, reached }),
    ...VERSIONS.flatMap((version) => Array.from({ length: SEEDS }, (_, seed) => () => laws(belay, seed, version))),
  ];
  for (const [index, scenario] of scenarios.entries()) {
    progress(`scenario ${index}`);
    const wrong = await scenario();
    if (wrong !== undefined) return wrong;
  }
  await belay.close({ mode: "cancel", limitMs: 1_000 });
  return undefined;
}

async function laws(belay: Belay, seed: number, version: Version): Promise<string | undefined> {
  const { said } = (await runNoise(belay, { seed, version })).transcript;
  return [...brokenLaws(said, version, { end: "finished" }), ...invalidMessages(said, version)][0];
}

async function opened(control: BelayControl): Promise<{ readonly client: RawClient; readonly session: string }> {
  const client = await RawClient.open(acpAgent({ control, clock: systemClock, version: "0" }), 1);
  return { client, session: await client.newSession(tmpdir()) };
}

async function cancelBefore(belay: Belay): Promise<string | undefined> {
  const { client, session } = await opened(belay);
  const prompt = client.prompt(session, "yyyys");
  await client.send(notification("session/cancel", { sessionId: session }), prompt);
  const { result } = await client.answer(prompt.id);
  await client.drop();
  return result?.stopReason === "end_turn" ? undefined : "cover: a cancel covers the prompt after it";
}

async function cancelBehind(belay: Belay): Promise<string | undefined> {
  const { client, session } = await opened(belay);
  const prompt = client.prompt(session, "W");
  await client.send(prompt, notification("session/cancel", { sessionId: session }));
  const { result } = await client.answer(prompt.id);
  await client.drop();
  return result?.stopReason === "cancelled" ? undefined : "cover: a cancel does not cover the prompt before it";
}

async function lateCancel(belay: Belay): Promise<string | undefined> {
  const { client, session } = await opened(belay);
  const first = client.prompt(session, "s");
  await client.send(first);
  const runId = answeredRun(await client.answer(first.id));
  const next = client.prompt(session, "yyyys");
  const params = { sessionId: session, _meta: { belay: { runId } } };
  await client.send(next, notification("session/cancel", params));
  const { result } = await client.answer(next.id);
  await client.drop();
  return result?.stopReason === "end_turn" ? undefined : "cover: a late cancel touches the next run";
}

/** Turns of the event loop between a request and the other messages of the same chunk, at most. */
const LOOP_TURNS = 20;

/** A slow control, as over a network: a session's row takes a while to read. */
function slowToLook(belay: Belay): BelayControl {
  const slow = (session: SessionControl): SessionControl =>
    over(session, "row", async () => {
      for (let left = LOOP_TURNS; left > 0; left -= 1) await settled();
      return session.row();
    });
  return over<BelayControl, "session">(belay, "session", (id) => slow(belay.session(id)));
}

/** A proxy with one replaced method. */
function over<T extends object, K extends keyof T>(target: T, name: K, method: T[K]): T {
  return new Proxy(target, {
    get: (_, wanted) => {
      if (wanted === name) return method;
      const value: unknown = Reflect.get(target, wanted, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A refused load, followed by a prompt, which must be answered with a result or an error. */
async function refusedLoad(belay: Belay): Promise<string | undefined> {
  const { client, session } = await opened(slowToLook(belay));
  await client.ask("session/close", { sessionId: session });
  const load = client.request("session/load", { sessionId: session, cwd: "/", mcpServers: [] });
  const prompt = client.prompt(session, "s");
  await client.send(load, prompt);
  const { error } = await client.answer(load.id);
  await client.answer(prompt.id);
  await client.drop();
  return error?.code === -32602 ? undefined : "directory: a session was opened in another one";
}

interface Gates {
  readonly gate: Gate;
  readonly reached: Gate;
}

async function disconnect(belay: Belay, { gate, reached }: Gates): Promise<string | undefined> {
  const { client, session } = await opened(belay);
  await client.send(client.prompt(session, "gate"));
  await reached.opened;
  await client.drop();
  await settled();
  gate.open();
  const [row] = await belay.session(session).runs();
  const outcome = await (await belay.run(row?.id ?? "")).outcome;
  return outcome.kind === "completed" ? undefined : "leave: a client that leaves stops its runs";
}
