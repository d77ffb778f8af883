// Prepares an external agent for a prompt: starts and initializes it, and opens its session or restores the earlier
// one.
import { isAbsolute, resolve } from "node:path";
import type { Json } from "../../../core/model/prompt.ts";
import type { Message } from "../../../core/read/transcript.ts";
import type { Turn } from "../../../ports/agent.ts";
import { AgentError } from "./agent-errors.ts";
import { type AgentProcess, isLoginWanted, startAgentProcess, wordsOf } from "./agent-process.ts";
import { type Capabilities, readCapabilities } from "./capabilities.ts";
import type { Settled } from "./external-agent-options.ts";
import { isObject, keptJson } from "./kept-json.ts";
import { earlierSession, isSessionName, SESSION_CALL } from "./session-call.ts";

export interface PreparedSession {
  readonly link: AgentProcess;
  readonly sessionId: string;
  /** `anew`: the agent does not remember the conversation. */
  readonly memory: "kept" | "anew";
  /** Names of MCP servers that the agent does not support. */
  readonly leftOut: readonly string[];
  /** Its predecessor did not answer after processes that it had started were ended. */
  readonly isReplacement: boolean;
}

interface SetupOptions {
  readonly cwd: string;
  readonly mcpServers: readonly Json[];
  readonly additionalDirectories?: readonly string[];
}

/** Rejects with an error message for people; then no process is left. */
export async function setUpSession(
  turn: Turn,
  options: Settled,
  messages: readonly Message[],
): Promise<Omit<PreparedSession, "isReplacement">> {
  const given = turn.cwd ?? options.cwd ?? ".";
  const cwd = isAbsolute(given) ? given : resolve(given);
  const link = await startAgentProcess(turn, options, cwd);
  try {
    const abilities = await greet(link, turn, options);
    const { updates } = options;
    if (updates !== undefined) link.onUpdate = (raw) => updates.update(turn.sessionId, raw);
    link.abilities = abilities;
    const brought = options.sessions?.(turn.sessionId);
    const { taken, leftOut } = sorted(brought?.mcpServers ?? [], abilities);
    const further = abilities.directories && brought !== undefined ? brought.additionalDirectories : [];
    const place = { cwd, mcpServers: taken, ...(further.length === 0 ? {} : { additionalDirectories: further }) };
    const known = earlierSession(messages, options.name);
    const restored = known !== undefined && (await restore({ link, turn, options }, known, place));
    const sessionId = restored ? known : await openSession({ link, turn, options }, place);
    link.sessionId = sessionId;
    const send = (method: string, params: object): Promise<Json> =>
      link.request<unknown>(method, { ...params, sessionId }).then((answer) => keptJson(answer ?? {}));
    await updates?.opened(turn.sessionId, link.menus, send);
    if (updates !== undefined) void link.ended.then(() => updates.ended(turn.sessionId));
    return { link, sessionId, memory: restored ? "kept" : "anew", leftOut };
  } catch (error) {
    // Whatever failed, this process is not usable.
    await link.stop({ kind: "policy", note: "It could not be initialized." });
    throw turn.signal.aborted ? turn.signal.reason : error;
  }
}

interface Parts {
  readonly link: AgentProcess;
  readonly turn: Turn;
  readonly options: Settled;
}

async function greet(link: AgentProcess, turn: Turn, options: Settled): Promise<Capabilities> {
  const asked = link.request<unknown>("initialize", {
    protocolVersion: VERSION,
    // The agent handles files and terminals itself; Belay sees them as its calls.
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    clientInfo: { name: "belay", version: options.version },
  });
  const abilities = readCapabilities(await answered({ link, turn, options }, asked, "initialize"));
  if (abilities.version === VERSION) return abilities;
  const spoken = abilities.version === undefined ? "no version" : `version ${abilities.version}`;
  throw await link.failed("agent_unusable", `speaks ${spoken} of the protocol, but version ${VERSION} is needed`);
}

const VERSION = 1;

/** False if the agent no longer knows the session, or cannot restore one. */
async function restore(parts: Parts, sessionId: string, place: SetupOptions): Promise<boolean> {
  const { link } = parts;
  const { restore: how } = link.abilities;
  if (how === undefined) return false;
  try {
    // Updates during the restore repeat the history and are dropped, because there is no listener yet.
    const asked = link.request<unknown>(`session/${how}`, { sessionId, ...place });
    link.menus = await answered(parts, asked, `session/${how}`);
    return true;
  } catch (error) {
    if (error instanceof AgentError && error.code === "agent_failed") return false;
    throw error;
  }
}

/** Recorded as a call, so that the session is found again after a restart, even if this turn is interrupted. */
async function openSession(parts: Parts, place: SetupOptions): Promise<string> {
  const { link, turn, options } = parts;
  const input = { agent: options.name, cwd: place.cwd };
  const open = async (): Promise<Json> => {
    const answer = await answered(parts, link.request<unknown>(SESSION_CALL, place), SESSION_CALL);
    const sessionId = isObject(answer) ? answer.sessionId : undefined;
    link.menus = answer;
    if (!isSessionName(sessionId)) throw await link.failed("agent_unusable", "opened a session without an id");
    return { agent: options.name, sessionId };
  };
  let trouble: unknown;
  const noting = (): Promise<Json> =>
    open().catch((error: unknown) => {
      trouble = error;
      throw error;
    });
  const made = await turn.call(SESSION_CALL, input, noting, { again: "begin" });
  if (made.kind === "completed" && isObject(made.value) && isSessionName(made.value.sessionId)) {
    return made.value.sessionId;
  }
  throw trouble ?? new AgentError("agent_unusable", `No session was opened with ${options.name}: it was stopped.`);
}

/** Awaits an answer: until the time limit, the end of the agent, or a stop of the turn. */
async function answered<T>({ link, turn, options }: Parts, asked: Promise<T>, method: string): Promise<T> {
  const limit = Promise.withResolvers<"limit">();
  const stop = Promise.withResolvers<"stop">();
  const dispose = turn.clock.after(options.startMs, () => limit.resolve("limit"));
  const stopped = (): void => stop.resolve("stop");
  turn.signal.addEventListener("abort", stopped, { once: true });
  if (turn.signal.aborted) stopped();
  try {
    const first = await Promise.race([asked.then((answer) => ({ answer })), limit.promise, stop.promise]);
    if (first === "stop") throw turn.signal.reason;
    if (first !== "limit") return first.answer;
    const limitMs = options.startMs;
    await link.stop({ kind: "policy", note: `It did not answer ${method} within ${limitMs} ms.` });
    throw await link.failed(
      "agent_unusable",
      `did not answer ${method} within ${limitMs} ms. Perhaps it does not speak ACP`,
    );
  } catch (error) {
    throw turn.signal.aborted ? turn.signal.reason : await inWords(link, error, method);
  } finally {
    dispose();
    turn.signal.removeEventListener("abort", stopped);
  }
}

async function inWords(link: AgentProcess, error: unknown, method: string): Promise<unknown> {
  if (error instanceof AgentError) return error;
  const words = wordsOf(error);
  if (words === undefined) {
    const result = await link.stop({ kind: "policy", note: "Its connection is broken." });
    return link.failed("agent_unusable", `ended before it answered ${method}`, result);
  }
  if (isLoginWanted(error)) return new AgentError("agent_unusable", login(link, words), { cause: error });
  return new AgentError("agent_failed", `${link.name} refused ${method}: ${words}`, { cause: error });
}

function login({ name, abilities }: AgentProcess, words: string): string {
  const ways = abilities.logins.length === 0 ? "" : ` It supports: ${abilities.logins.join(", ")}.`;
  return `${name} requires a login: ${words}. Start it once by hand and log in there.${ways}`;
}

/** Splits MCP servers: every agent supports stdio servers; other kinds need a capability. */
function sorted(
  servers: readonly Json[],
  { mcp }: Capabilities,
): { taken: readonly Json[]; leftOut: readonly string[] } {
  const canTake = (server: Json): boolean => {
    const type = isObject(server) ? server.type : undefined;
    return type === "http" ? mcp.http : type === "sse" ? mcp.sse : true;
  };
  const leftOut = servers.filter((server) => !canTake(server)).map((one) => (isObject(one) ? String(one.name) : "?"));
  return { taken: servers.filter(canTake), leftOut };
}
