// The type of a configuration, as users write it. Every field is optional.
import type { PermissionMode } from "../agent/permission.ts";
import type { Retention } from "../core/model/retention.ts";
import type { Mechanism, Profile, Tier } from "../ports/spawner.ts";
import type { BelayOptions } from "../sdk/belay-options.ts";
import type { Directories } from "../sdk/directories.ts";

export interface BelayConfig {
  /** The model: "openai/gpt-…", "anthropic/claude-…", or "NAME/model" with NAME one of `providers`. */
  readonly model?: string;
  /** The directory that the agent works in. Default: the working directory. */
  readonly workspace?: string;
  /** Which directories a session may use: those inside the workspace (default), or `any`. */
  readonly directories?: Directories;
  /** The database file, or ":memory:". */
  readonly store?: string;
  /** What the agent may do without approval. Default: `ask`. */
  readonly mode?: PermissionMode;
  /** The modes that a session may be set to: a ceiling. Default: all. Only for the built-in agent over a `model`. */
  readonly modes?: readonly PermissionMode[];
  /** The path of a module with your own agent: its export `agent`, or its default export. */
  readonly agent?: string;
  /** An external agent that speaks ACP on stdin and stdout: a program and its arguments. It inherits your keys. */
  readonly acp?: readonly [string, ...string[]];
  /** The path of a module with your own tools, besides the built-in ones: its export `tools`, or its default export. */
  readonly tools?: string;
  /** The path of a module with your hooks: its export `hooks`, or its default export. */
  readonly hooks?: string;
  /** Instructions for the model, added to the built-in system prompt: a text, or a file with one. */
  readonly instructions?: string | { readonly file: string };
  /** How much of each session and of all sessions is kept. Default: everything. */
  readonly retention?: Retention;
  readonly limits?: LimitsConfig;
  readonly processes?: ProcessesConfig;
  readonly server?: ServerConfig;
  /** Your own providers, by the name before the slash in `model`. */
  readonly providers?: Readonly<Record<string, ProviderConfig>>;
}

export interface LimitsConfig {
  /** Maximum duration of a run. */
  readonly runLimitMs?: number;
  /** Maximum number of live runs. */
  readonly liveRunsMax?: number;
  /** Maximum turns of one run. */
  readonly turnsMax?: number;
  /** Maximum tokens of one run, input and output together. */
  readonly tokensMax?: number;
  /** How long stopping work may take before it is abandoned. */
  readonly graceMs?: number;
  /** Maximum duration of one of the agent's commands. */
  readonly commandMs?: number;
}

export interface ProcessesConfig {
  readonly requireTier?: Tier;
  readonly mechanism?: Mechanism;
  readonly profile?: Profile;
  readonly env?: { readonly allow?: readonly string[] };
  /** A cgroup v2 directory that was delegated to Belay. */
  readonly cgroup?: string;
}

export interface ServerConfig {
  readonly host?: string;
  readonly port?: number;
  /** The path of the private socket. */
  readonly socket?: string;
  /** Other origins whose web pages may call the server (CORS), each exactly as a browser sends it. */
  readonly origins?: readonly string[];
  /** Additional host names under which the server may be reached. */
  readonly hosts?: readonly string[];
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Limits for one token and for all connections together. Raise them for many concurrent clients. */
  readonly crowd?: RateLimitsConfig;
  /** A reverse proxy that terminates TLS and authenticates itself with the secret in this file. */
  readonly trustedProxy?: { readonly secretFile: string; readonly header?: string };
}

export interface RateLimitsConfig {
  /** Mutating requests per second per token; bursts of twice as many pass. Cancels do not count. Default 20. */
  readonly changesPerSecond?: number;
  /** Open event streams per token. Default 32. */
  readonly streamsPerToken?: number;
  /** Open connections per listener. Default 1024. */
  readonly connections?: number;
}

export interface ProviderConfig {
  readonly kind?: "openai-compatible";
  readonly baseUrl: string;
  /** The environment variable with the key; with `_FILE` appended, of a file with the key. Default: no key is sent. */
  readonly apiKeyEnv?: string;
}

/** A configuration with its defaults filled in. Paths are absolute. */
export interface SettledConfig extends BelayConfig {
  readonly workspace: string;
  readonly mode: PermissionMode;
}

/** The paths of the modules with your code. Each is executed: it must be trusted, and no command may change it. */
export const modulesOf = ({ agent, tools, hooks }: BelayConfig): readonly string[] =>
  [agent, tools, hooks].filter((path) => path !== undefined);

/** Returns the configuration unchanged. In `belay.config.ts` it gives editors the type of the fields. */
export const defineConfig = (config: BelayConfig): BelayConfig => config;

/** The options of `openBelay()` that a configuration sets, without the agent and the store. */
export function openOptions({
  workspace,
  directories,
  retention,
  limits = {},
  processes = {},
}: SettledConfig): Pick<
  BelayOptions,
  "directories" | "retention" | "graceMs" | "liveRunsMax" | "runLimitMs" | "processes"
> {
  const { graceMs, liveRunsMax, runLimitMs } = limits;
  return {
    ...(directories === undefined ? {} : { directories }),
    ...(retention === undefined ? {} : { retention }),
    ...(graceMs === undefined ? {} : { graceMs }),
    ...(liveRunsMax === undefined ? {} : { liveRunsMax }),
    ...(runLimitMs === undefined ? {} : { runLimitMs }),
    processes: { workspace, ...processes, ...(graceMs === undefined ? {} : { graceMs }) },
  };
}
