// The options of `externalAgent()`, checked.
import { basename } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import type { SessionId } from "../../../core/model/ids.ts";
import type { Json } from "../../../core/model/prompt.ts";
import type { AgentSessions } from "./agent-sessions.ts";
import { isObject } from "./kept-json.ts";
import { IDLE_MS, IDLE_PROCESSES_MAX, START_MS, START_MS_MAX } from "./limits.ts";

/** Resources that a client provided for a session. Kept in memory only, because they may contain secrets. */
export interface SessionResources {
  /** In the protocol's format. */
  readonly mcpServers: readonly Json[];
  readonly additionalDirectories: readonly string[];
}

export type Leave = "ask" | "give";

export interface ExternalAgentOptions {
  /** The program and its arguments. It must speak the Agent Client Protocol on stdin and stdout. */
  readonly command: readonly [string, ...string[]];
  /** Environment variables in addition to the inherited ones. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * The inherited environment, without Belay's own variables. Default: the environment of this program when the agent
   * is started.
   */
  readonly inherit?: Readonly<Record<string, string | undefined>>;
  /** The working directory of sessions without one. Default: the working directory of this program. */
  readonly cwd?: string;
  /** How its permission requests are answered: by asking people (`ask`, the default) or always with yes (`give`). */
  readonly leave?: Leave;
  readonly sessions?: (id: SessionId) => SessionResources | undefined;
  /** Passes on updates that Belay does not record, and changes of the agent's own settings. */
  readonly updates?: AgentSessions;
  /** Its display name. Default: the name of the program. */
  readonly name?: string;
  /** Belay's version, sent to the agent. */
  readonly version?: string;
  /** How long it may take to answer its first requests. Default 60000. */
  readonly startMs?: number;
  /**
   * How long it may take to answer a cancel before its process is ended. Default: a share of the run's grace period,
   * which is also the upper limit: a slower agent needs a longer `graceMs` of Belay.
   */
  readonly stopMs?: number;
  /** How long the process of an idle session is kept. Default 600000. */
  readonly idleMs?: number;
  /** How many idle processes are kept. Default 16. */
  readonly idleMax?: number;
}

export interface ExternalAgentSettings extends ExternalAgentOptions {
  readonly leave: Leave;
  readonly env: Readonly<Record<string, string>>;
  readonly name: string;
  readonly version: string;
  readonly startMs: number;
  readonly idleMs: number;
  readonly idleMax: number;
}

export function checkExternalAgent(given: ExternalAgentOptions): ExternalAgentSettings {
  const { command, env = {}, cwd, name, leave = "ask", version = "0" } = given;
  const { stopMs, startMs = START_MS, idleMs = IDLE_MS, idleMax = IDLE_PROCESSES_MAX } = given;
  const args: unknown = command;
  if (!Array.isArray(args) || args.length === 0 || args.some((one) => typeof one !== "string") || args[0] === "") {
    throw invalid('`command` must be a program and its arguments: ["some-agent", "--acp"].');
  }
  if (!isObject(env) || Object.values(env).some((one) => typeof one !== "string")) {
    throw invalid("`env` must be an object of strings.");
  }
  if (leave !== "ask" && leave !== "give") throw invalid('`leave` must be "ask" or "give".');
  if (cwd !== undefined && (typeof cwd !== "string" || cwd === "")) throw invalid("`cwd` must be a path.");
  if (!isMs(startMs) || !isMs(idleMs) || (stopMs !== undefined && !isMs(stopMs))) {
    throw invalid(
      `\`startMs\`, \`stopMs\` and \`idleMs\` must be whole numbers of milliseconds from 1 to ${START_MS_MAX}.`,
    );
  }
  if (!Number.isInteger(idleMax) || idleMax < 0) throw invalid("`idleMax` must be a whole number from 0.");
  const known = { env: withoutOurs(env), name: name ?? basename(command[0]) };
  return { ...given, ...known, leave, version, startMs, idleMs, idleMax };
}

/**
 * Drops Belay's own variables: with a token the agent could approve its own calls, which no one intends by passing an
 * environment.
 */
const withoutOurs = (env: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(env).filter(([variable]) => !variable.startsWith("BELAY_")));

const isMs = (value: number): boolean => Number.isInteger(value) && value >= 1 && value <= START_MS_MAX;

const invalid = (message: string): ControlError => new ControlError("invalid", `externalAgent(): ${message}`);
