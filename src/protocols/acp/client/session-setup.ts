// Prepares an external agent for a prompt: starts and initializes it, and opens its session or restores the earlier
// one.
import { isAbsolute, resolve } from "node:path";
import type { Json } from "../../../core/model/prompt.ts";
import type { Message } from "../../../core/read/transcript.ts";
import type { Turn } from "../../../ports/agent.ts";
import { AgentError } from "./agent-errors.ts";
import { type AgentProcess, agentErrorText, isLoginWanted, startAgentProcess } from "./agent-process.ts";
import { type Capabilities, readCapabilities } from "./capabilities.ts";
import type { ExternalAgentSettings } from "./external-agent-options.ts";
import { isObject, keptJson } from "./kept-json.ts";
import { earlierSession, isSessionName, SESSION_CALL } from "./session-call.ts";

export interface PreparedSession {
  readonly agentProcess: AgentProcess;
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
  options: ExternalAgentSettings,
  messages: readonly Message[],
): Promise<Omit<PreparedSession, "isReplacement">> {
  const given = turn.cwd ?? options.cwd ?? ".";
  const cwd = isAbsolute(given) ? given : resolve(given);
  const agentProcess = await startAgentProcess(turn, options, cwd);
  try {
    const capabilities = await initialize(agentProcess, turn, options);
    const { updates } = options;
    if (updates !== undefined) agentProcess.onUnrecorded = (raw) => updates.update(turn.sessionId, raw);
    agentProcess.capabilities = capabilities;
    const resources = options.sessions?.(turn.sessionId);
    const { supported, leftOut } = splitServers(resources?.mcpServers ?? [], capabilities);
    const further = capabilities.directories && resources !== undefined ? resources.additionalDirectories : [];
    const place = { cwd, mcpServers: supported, ...(further.length === 0 ? {} : { additionalDirectories: further }) };
    const known = earlierSession(messages, options.name);
    const restored = known !== undefined && (await restore({ agentProcess, turn, options }, known, place));
    const sessionId = restored ? known : await openSession({ agentProcess, turn, options }, place);
    agentProcess.sessionId = sessionId;
    const send = (method: string, params: object): Promise<Json> =>
      agentProcess.request<unknown>(method, { ...params, sessionId }).then((answer) => keptJson(answer ?? {}));
    await updates?.opened(turn.sessionId, agentProcess.menus, send);
    if (updates !== undefined) void agentProcess.ended.then(() => updates.ended(turn.sessionId));
    return { agentProcess, sessionId, memory: restored ? "kept" : "anew", leftOut };
  } catch (error) {
    // Whatever failed, this process is not usable.
    await agentProcess.stop({ kind: "policy", note: "It could not be initialized." });
    throw turn.signal.aborted ? turn.signal.reason : error;
  }
}

interface Parts {
  readonly agentProcess: AgentProcess;
  readonly turn: Turn;
  readonly options: ExternalAgentSettings;
}

async function initialize(
  agentProcess: AgentProcess,
  turn: Turn,
  options: ExternalAgentSettings,
): Promise<Capabilities> {
  const request = agentProcess.request<unknown>("initialize", {
    protocolVersion: VERSION,
    // The agent handles files and terminals itself; Belay sees them as its calls.
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    clientInfo: { name: "belay", version: options.version },
  });
  const capabilities = readCapabilities(await answered({ agentProcess, turn, options }, request, "initialize"));
  if (capabilities.version === VERSION) return capabilities;
  const version = capabilities.version === undefined ? "no version" : `version ${capabilities.version}`;
  throw await agentProcess.failed(
    "agent_unusable",
    `speaks ${version} of the protocol, but version ${VERSION} is needed`,
  );
}

const VERSION = 1;

/** False if the agent no longer knows the session, or cannot restore one. */
async function restore(parts: Parts, sessionId: string, place: SetupOptions): Promise<boolean> {
  const { agentProcess } = parts;
  const { restore: how } = agentProcess.capabilities;
  if (how === undefined) return false;
  try {
    // Updates during the restore repeat the history and are dropped, because there is no listener yet.
    const request = agentProcess.request<unknown>(`session/${how}`, { sessionId, ...place });
    agentProcess.menus = await answered(parts, request, `session/${how}`);
    return true;
  } catch (error) {
    if (error instanceof AgentError && error.code === "agent_failed") return false;
    throw error;
  }
}

/** Recorded as a call, so that the session is found again after a restart, even if this turn is interrupted. */
async function openSession(parts: Parts, place: SetupOptions): Promise<string> {
  const { agentProcess, turn, options } = parts;
  const input = { agent: options.name, cwd: place.cwd };
  const open = async (): Promise<Json> => {
    const answer = await answered(parts, agentProcess.request<unknown>(SESSION_CALL, place), SESSION_CALL);
    const sessionId = isObject(answer) ? answer.sessionId : undefined;
    agentProcess.menus = answer;
    if (!isSessionName(sessionId)) throw await agentProcess.failed("agent_unusable", "opened a session without an id");
    return { agent: options.name, sessionId };
  };
  let failure: unknown;
  const recordFailure = (): Promise<Json> =>
    open().catch((error: unknown) => {
      failure = error;
      throw error;
    });
  const made = await turn.call(SESSION_CALL, input, recordFailure, { again: "begin" });
  if (made.kind === "completed" && isObject(made.value) && isSessionName(made.value.sessionId)) {
    return made.value.sessionId;
  }
  throw failure ?? new AgentError("agent_unusable", `No session was opened with ${options.name}: it was stopped.`);
}

/** Awaits an answer: until the time limit, the end of the agent, or a stop of the turn. */
async function answered<T>({ agentProcess, turn, options }: Parts, request: Promise<T>, method: string): Promise<T> {
  const limit = Promise.withResolvers<"limit">();
  const stop = Promise.withResolvers<"stop">();
  const dispose = turn.clock.after(options.startMs, () => limit.resolve("limit"));
  const stopped = (): void => stop.resolve("stop");
  turn.signal.addEventListener("abort", stopped, { once: true });
  if (turn.signal.aborted) stopped();
  try {
    const first = await Promise.race([request.then((answer) => ({ answer })), limit.promise, stop.promise]);
    if (first === "stop") throw turn.signal.reason;
    if (first !== "limit") return first.answer;
    const limitMs = options.startMs;
    await agentProcess.stop({ kind: "policy", note: `It did not answer ${method} within ${limitMs} ms.` });
    throw await agentProcess.failed(
      "agent_unusable",
      `did not answer ${method} within ${limitMs} ms. Perhaps it does not speak ACP`,
    );
  } catch (error) {
    throw turn.signal.aborted ? turn.signal.reason : await readableError(agentProcess, error, method);
  } finally {
    dispose();
    turn.signal.removeEventListener("abort", stopped);
  }
}

async function readableError(agentProcess: AgentProcess, error: unknown, method: string): Promise<unknown> {
  if (error instanceof AgentError) return error;
  const words = agentErrorText(error);
  if (words === undefined) {
    const result = await agentProcess.stop({ kind: "policy", note: "Its connection is broken." });
    return agentProcess.failed("agent_unusable", `ended before it answered ${method}`, result);
  }
  if (isLoginWanted(error)) return new AgentError("agent_unusable", login(agentProcess, words), { cause: error });
  return new AgentError("agent_failed", `${agentProcess.name} refused ${method}: ${words}`, { cause: error });
}

function login({ name, capabilities }: AgentProcess, words: string): string {
  const ways = capabilities.logins.length === 0 ? "" : ` It supports: ${capabilities.logins.join(", ")}.`;
  return `${name} requires a login: ${words}. Start it once by hand and log in there.${ways}`;
}

/** Splits MCP servers: every agent supports stdio servers; other kinds need a capability. */
function splitServers(
  servers: readonly Json[],
  { mcp }: Capabilities,
): { supported: readonly Json[]; leftOut: readonly string[] } {
  const canTake = (server: Json): boolean => {
    const type = isObject(server) ? server.type : undefined;
    return type === "http" ? mcp.http : type === "sse" ? mcp.sse : true;
  };
  const leftOut = servers.filter((server) => !canTake(server)).map((one) => (isObject(one) ? String(one.name) : "?"));
  return { supported: servers.filter(canTake), leftOut };
}
