// What a foreign agent is made with, checked.
import { basename } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import type { SessionId } from "../../../core/model/ids.ts";
import type { Json } from "../../../core/model/prompt.ts";
import type { AgentSessions } from "./agent-sessions.ts";
import { isObject } from "./kept-json.ts";
import { IDLE_MS, IDLE_PROCESSES_MAX, START_MS, START_MS_MAX } from "./limits.ts";

/** What a client brought along for a session. Kept in memory only: it may hold secrets. */
export interface SessionResources {
  /** As the protocol has them. */
  readonly mcpServers: readonly Json[];
  readonly additionalDirectories: readonly string[];
}

export type Leave = "ask" | "give";

export interface ExternalAgentOptions {
  /** The program and its arguments. It speaks the Agent Client Protocol on stdin and stdout. */
  readonly command: readonly [string, ...string[]];
  /** On top of what it inherits. */
  readonly env?: Readonly<Record<string, string>>;
  /** What it inherits, without what is Belay's own. Default the environment of this program, when it is started. */
  readonly inherit?: Readonly<Record<string, string | undefined>>;
  /** Where sessions work that have no directory of their own. Default the working directory of this program. */
  readonly cwd?: string;
  /** What it asks leave for: people are asked (default), or it is given unasked. */
  readonly leave?: Leave;
  readonly sessions?: (id: SessionId) => SessionResources | undefined;
  /** Where clients of the protocol follow what Belay does not record, and change the agent's own settings. */
  readonly updates?: AgentSessions;
  /** What people know it by. Default the name of the program. */
  readonly name?: string;
  /** Of Belay, told to the agent. */
  readonly version?: string;
  /** How long it may take to answer its first questions. Default 60000. */
  readonly startMs?: number;
  /**
   * How long it may take to answer a cancel before its process is ended. Default a share of the run's grace, and never
   * more than the grace allows: an agent that needs longer needs a longer `graceMs` of Belay.
   */
  readonly stopMs?: number;
  /** How long its process is kept for a session that nobody works in. Default 600000. */
  readonly idleMs?: number;
  /** How many such processes are kept. Default 16. */
  readonly idleMax?: number;
}

export interface Settled extends ExternalAgentOptions {
  readonly leave: Leave;
  readonly env: Readonly<Record<string, string>>;
  readonly name: string;
  readonly version: string;
  readonly startMs: number;
  readonly idleMs: number;
  readonly idleMax: number;
}

export function checkExternalAgent(given: ExternalAgentOptions): Settled {
  const { command, env = {}, cwd, name, leave = "ask", version = "0" } = given;
  const { stopMs, startMs = START_MS, idleMs = IDLE_MS, idleMax = IDLE_PROCESSES_MAX } = given;
  const args: unknown = command;
  if (!Array.isArray(args) || args.length === 0 || args.some((one) => typeof one !== "string") || args[0] === "") {
    throw invalid('`command` is a program and its arguments: ["some-agent", "--acp"].');
  }
  if (!isObject(env) || Object.values(env).some((one) => typeof one !== "string")) {
    throw invalid("`env` is an object of texts.");
  }
  if (leave !== "ask" && leave !== "give") throw invalid('`leave` is "ask" or "give".');
  if (cwd !== undefined && (typeof cwd !== "string" || cwd === "")) throw invalid("`cwd` is a path.");
  if (!isMs(startMs) || !isMs(idleMs) || (stopMs !== undefined && !isMs(stopMs))) {
    throw invalid(
      `\`startMs\`, \`stopMs\` and \`idleMs\` must be whole numbers of milliseconds from 1 to ${START_MS_MAX}.`,
    );
  }
  if (!Number.isInteger(idleMax) || idleMax < 0) throw invalid("`idleMax` is a whole number from 0.");
  const known = { env: withoutOurs(env), name: name ?? basename(command[0]) };
  return { ...given, ...known, leave, version, startMs, idleMs, idleMax };
}

/** A token would let the agent allow its own calls. Whoever hands over a whole environment does not mean that. */
const withoutOurs = (env: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(env).filter(([variable]) => !variable.startsWith("BELAY_")));

const isMs = (value: number): boolean => Number.isInteger(value) && value >= 1 && value <= START_MS_MAX;

const invalid = (message: string): ControlError => new ControlError("invalid", `A foreign agent: ${message}`);
