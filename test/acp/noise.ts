// Seeded random traffic: a client that writes prompts and stops as lines in one chunk, and an agent that acts on each
// letter of its prompt.
import { tmpdir } from "node:os";
import type { Agent, Turn } from "../../src/ports/agent.ts";
import type { BelayControl } from "../../src/ports/control.ts";
import { acpAgent } from "../../src/protocols/acp/agent/acp-agent.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { settled } from "../../src/testing/manual-clock.ts";
import { notification, RawClient } from "./raw-client.ts";
import { type Message, type Said, textOf, updateOf, type Version } from "./transcript.ts";

type Chance = (below: number) => number;

/** A pseudo-random generator (linear congruential), the same for each seed. */
function chanceOf(seed: number): Chance {
  let state = (seed * 2_654_435_761) >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const stopped = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

/** One action per letter of the prompt. */
const ACTS: Readonly<Record<string, (turn: Turn) => Promise<unknown>>> = {
  s: async (turn) => turn.emit("so "),
  t: async (turn) => turn.emit("hm ", "reasoning"),
  /** Lets other work proceed. */
  y: settled,
  c: (turn) => turn.call("read_file", { path: "a" }, () => "done"),
  /** A call that runs until it is stopped. */
  C: (turn) => turn.call("shell", { command: "wait" }, (call) => stopped(call.signal)),
  a: (turn) => turn.call("write_file", { path: "a" }, () => "done", { approval: true }),
  /** Runs until it is stopped. */
  W: (turn) => stopped(turn.signal),
  f: async () => {
    throw new Error("it did not work");
  },
};

export const agent: Agent = async (turn) => {
  for (const letter of turn.prompt.text) await ACTS[letter]?.(turn);
};

const SCRIPTS = ["s", "sss", "sys", "scs", "sC", "CsC", "a", "sas", "sW", "W", "yW", "yys", "sf", "ty", "ccc", "yC"];

interface Noise {
  readonly client: RawClient;
  readonly chance: Chance;
  readonly sessions: readonly string[];
}

const pick = <T>(chance: Chance, from: readonly T[]): T => from[chance(from.length)] as T;

function stopOf({ client, chance, sessions }: Noise, said: readonly Message[]): Message {
  const sessionId = pick(chance, sessions);
  const calls = client.transcript.said.flatMap((one) => textOf(updateOf(one)?.update.toolCallId) || []);
  const prompts = said.filter(({ method }) => method === "session/prompt");
  switch (chance(client.version === 1 ? 6 : 5)) {
    case 0:
    case 1:
      return notification("session/cancel", { sessionId });
    case 2:
      return notification("$/cancel_request", { requestId: pick(chance, prompts)?.id ?? 999 });
    case 3: {
      const method = client.version === 1 ? "_belay/tool_call/cancel" : "tool_call/cancel";
      return client.request(method, { sessionId, toolCallId: pick(chance, calls) ?? "call_nowhere" });
    }
    case 4: {
      const params = { sessionId, cwd: tmpdir(), mcpServers: [] };
      if (chance(2) === 0) return client.request("session/close", { sessionId });
      if (client.version === 1) return client.request("session/load", params);
      return client.request("session/resume", { ...params, replayFrom: { type: "start" } });
    }
    default:
      return client.request("session/cancel_tool_call", {
        sessionId,
        toolCallId: pick(chance, calls) ?? "call_nowhere",
      });
  }
}

function pieceOf(noise: Noise): readonly Message[] {
  const { client, chance, sessions } = noise;
  const messages: Message[] = [];
  const count = 2 + chance(6);
  while (messages.length < count) {
    if (chance(5) < 3) messages.push(client.prompt(pick(chance, sessions), pick(chance, SCRIPTS)));
    else messages.push(stopOf(noise, messages));
  }
  return messages;
}

const isAnswered = (said: readonly Said[], id: Message["id"]): boolean =>
  said.some(({ by, message }) => by === "agent" && message.method === undefined && message.id === id);

/** Resolves when every request is answered. */
async function allAnswered({ transcript }: RawClient): Promise<void> {
  await transcript.when((said) => {
    const asked = said.filter(
      ({ by, message }) => by === "client" && message.method !== undefined && message.id !== undefined,
    );
    return asked.every(({ message }) => isAnswered(said, message.id)) ? true : undefined;
  });
}

export interface NoiseOptions {
  readonly seed: number;
  readonly version: Version;
  /** Called with the client when it is connected. */
  readonly begun?: (client: RawClient) => void;
}

/** Resolves when every request is answered and the client has disconnected. */
export async function runNoise(control: BelayControl, { seed, version, begun }: NoiseOptions): Promise<RawClient> {
  const chance = chanceOf(seed);
  const acp = acpAgent({ control, clock: systemClock, version: "0" });
  const answers = chance(2) === 0;
  const client: RawClient = await RawClient.open(acp, version, (message) => {
    if (message.method !== "session/request_permission" || !answers) return;
    const outcome = { outcome: "selected", optionId: chance(2) === 0 ? "allow" : "deny" };
    void client.send({ jsonrpc: "2.0", id: message.id ?? null, result: { outcome } });
  });
  begun?.(client);
  const sessions = [await client.newSession(tmpdir())];
  if (chance(2) === 0) sessions.push(await client.newSession(tmpdir()));
  for (let pieces = 1 + chance(3); pieces > 0; pieces -= 1) {
    await client.send(...pieceOf({ client, chance, sessions }));
    // The work has progressed as far as it can without a stop.
    await settled();
  }
  // Stops the rest; closing also stops runs that wait only for that.
  await client.send(...sessions.map((sessionId) => notification("session/cancel", { sessionId })));
  await allAnswered(client);
  await client.send(...sessions.map((sessionId) => client.request("session/close", { sessionId })));
  await allAnswered(client);
  await client.drop();
  return client;
}
