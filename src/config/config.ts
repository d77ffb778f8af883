// What can be configured, as people write it down. Everything is optional.
import type { PermissionMode } from "../agent/permission.ts";
import type { Retention } from "../core/model/retention.ts";
import type { Mechanism, Profile, Tier } from "../ports/spawner.ts";
import type { Directories } from "../sdk/directories.ts";

export interface BelayConfig {
  /** Who answers: "openai/gpt-…", "anthropic/claude-…", or "NAME/model" with NAME one of `providers`. */
  readonly model?: string;
  /** The directory the agent works in. Default the working directory. */
  readonly workspace?: string;
  /** Which directories a session may be given: those inside the workspace (default), or `any`. */
  readonly directories?: Directories;
  /** The file that keeps everything, or ":memory:". */
  readonly store?: string;
  /** What the agent may do by itself. Default `ask`. */
  readonly mode?: PermissionMode;
  /** The modes that a session may be set to: a ceiling. Default: all. For the agent of a model only. */
  readonly modes?: readonly PermissionMode[];
  /** A module with an agent of your own: its export `agent`, or its default one. */
  readonly agent?: string;
  /** An agent of somebody else's that speaks ACP on its pipes: a program and its arguments. It gets your keys. */
  readonly acp?: readonly [string, ...string[]];
  /** A module with tools of your own, added to ours: its export `tools`, or its default one. */
  readonly tools?: string;
  /** What the model is told besides our own words: a text, or a file with one. */
  readonly instructions?: string | { readonly file: string };
  /** What is kept of each session and of all. Default: everything. */
  readonly retention?: Retention;
  readonly limits?: LimitsConfig;
  readonly processes?: ProcessesConfig;
  readonly server?: ServerConfig;
  /** Providers of your own, by the name that stands before the slash in `model`. */
  readonly providers?: Readonly<Record<string, ProviderConfig>>;
}

export interface LimitsConfig {
  /** How long a run may take altogether. */
  readonly runLimitMs?: number;
  /** Runs that are live at once. */
  readonly liveRunsMax?: number;
  /** Turns of one run. */
  readonly turnsMax?: number;
  /** Tokens of one run, of input and output together. */
  readonly tokensMax?: number;
  /** How long work may take to stop before it is given up. */
  readonly graceMs?: number;
  /** How long a command of the agent may take. */
  readonly commandMs?: number;
}

export interface ProcessesConfig {
  readonly requireTier?: Tier;
  readonly mechanism?: Mechanism;
  readonly profile?: Profile;
  readonly env?: { readonly allow?: readonly string[] };
  /** A directory of cgroup v2 that was delegated to Belay. */
  readonly cgroup?: string;
}

export interface ServerConfig {
  readonly host?: string;
  readonly port?: number;
  /** The path of the private socket. */
  readonly socket?: string;
  /** Web pages of other origins that may ask, each exactly as a browser names it. */
  readonly origins?: readonly string[];
  /** Names besides its own under which the server may be asked for. */
  readonly hosts?: readonly string[];
  readonly tls?: { readonly cert: string; readonly key: string };
  /** What one token and all connections together may have, where the defaults are too small for a crowd of your own. */
  readonly crowd?: RateLimitsConfig;
  /** A proxy that ends TLS before us, and proves itself with what stands in this file. */
  readonly trustedProxy?: { readonly secretFile: string; readonly header?: string };
}

export interface RateLimitsConfig {
  /** Changes a second of one token; twice as many at once. Cancels do not count. Default 20. */
  readonly changesPerSecond?: number;
  /** Event streams that one token has open. Default 32. */
  readonly streamsPerToken?: number;
  /** Connections of a listener. Default 1024. */
  readonly connections?: number;
}

export interface ProviderConfig {
  readonly kind?: "openai-compatible";
  readonly baseUrl: string;
  /** The variable that has its key; with `_FILE` behind it, the file that has. Without it no key is sent. */
  readonly apiKeyEnv?: string;
}

/** A configuration with nothing left open that we know an answer to. Paths are absolute. */
export interface SettledConfig extends BelayConfig {
  readonly workspace: string;
  readonly mode: PermissionMode;
}

/** For `belay.config.ts`: the same, and an editor that knows the fields. */
export const defineConfig = (config: BelayConfig): BelayConfig => config;
