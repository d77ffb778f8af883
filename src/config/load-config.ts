// Merges one configuration from the command line, the environment, the configuration file and the defaults.
import { ControlError } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../system/system-clock.ts";
import type { BelayConfig, SettledConfig } from "./config.ts";
import { absolute, CONFIG_NAMES, readConfigFile, type Trust } from "./config-file.ts";
import { checkConfig } from "./config-shape.ts";

/** Has the type of `process.env`. */
export type Environment = Record<string, string | undefined>;

export interface LoadOptions {
  readonly cwd: string;
  /** Options of the command line. `config` names the file; with `false` none is read. Paths are relative to `cwd`. */
  readonly flags: BelayConfig & { readonly config?: string | false };
  readonly env: Readonly<Environment>;
  /** File names to look for in `cwd`. Default: `belay.config.ts`, `.js`, `.mjs` and `.json`. */
  readonly files?: readonly string[];
  /** Defaults, besides `workspace` (`cwd`) and `mode` (`ask`). */
  readonly defaults?: BelayConfig;
  readonly clock?: Clock;
  /** Decides about a discovered file. Default: none is trusted. */
  readonly trust?: Trust;
}

export interface LoadedConfig {
  readonly config: SettledConfig;
  /** The file that was read. */
  readonly file: string | undefined;
  /** Lines for the user at startup: that code was run, or what a discovered file sets. */
  readonly notices: readonly string[];
}

const VARIABLES: Readonly<Record<string, string>> = {
  ...{ BELAY_MODEL: "model", BELAY_WORKSPACE: "workspace", BELAY_STORE: "store", BELAY_MODE: "mode" },
  ...{ BELAY_AGENT: "agent", BELAY_TOOLS: "tools", BELAY_HOOKS: "hooks", BELAY_INSTRUCTIONS_FILE: "instructions.file" },
  ...{ BELAY_HOST: "server.host", BELAY_PORT: "server.port", BELAY_SOCKET: "server.socket" },
};

/** Loads and merges the configuration. Throws `invalid` with the source, the field and the problem. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const {
    cwd,
    flags,
    env,
    files: names = CONFIG_NAMES,
    defaults = {},
    clock = systemClock,
    trust = async () => "untrusted",
  } = options;
  const { config: named, ...typed } = flags;
  const fromFlags = absolute(checkConfig(defined(typed), { kind: "flags" }), cwd);
  const fromEnv = absolute(fromEnvironment(env), cwd);
  const file = await readConfigFile({ cwd, named: named ?? set(env, "BELAY_CONFIG"), names, clock, trust });
  const sources: readonly BelayConfig[] = [defaults, file?.config ?? {}, fromEnv, fromFlags];
  const layers = [{ workspace: cwd, mode: "ask" as const }, ...withOneAgent(sources)];
  // Decoding: each layer was checked, and the first one sets the required fields.
  const config = layers.reduce<unknown>(merged, {}) as SettledConfig;
  const { mode } = layers.slice(1).findLast((layer) => layer.mode !== undefined) ?? {};
  return { config: withinModes(config, mode), file: file?.path, notices: file?.notices ?? [] };
}

/** Each of these fields selects the agent, so they are one setting. */
const AGENT_FIELDS = ["model", "agent", "acp"] as const satisfies readonly (keyof BelayConfig)[];

/** The last source that selects an agent wins: the agent fields of the sources before it are dropped. */
function withOneAgent(sources: readonly BelayConfig[]): readonly BelayConfig[] {
  const deciding = sources.findLastIndex((source) => AGENT_FIELDS.some((name) => source[name] !== undefined));
  return sources.map((source, at) => {
    if (at >= deciding) return source;
    const { model: _model, agent: _agent, acp: _acp, ...rest } = source;
    return rest;
  });
}

/** Refuses a chosen mode that `modes` does not allow. If no mode was chosen, the first allowed one is the default. */
function withinModes(config: SettledConfig, chosen: SettledConfig["mode"] | undefined): SettledConfig {
  const { modes, mode } = config;
  const [first] = modes ?? [];
  if (modes === undefined || first === undefined || modes.includes(mode)) return config;
  if (chosen === undefined) return { ...config, mode: first };
  throw new ControlError("invalid", `The mode is ${chosen}, but \`modes\` allows only ${modes.join(", ")}.`, {
    hint: "Choose one of them with --mode, or allow it with --modes.",
  });
}

const set = (env: Readonly<Environment>, name: string): string | undefined => env[name] || undefined;

function fromEnvironment(env: Readonly<Environment>): BelayConfig {
  const given = Object.entries(VARIABLES).flatMap(([name, field]) => {
    const value = set(env, name);
    // The port is the only number.
    return value === undefined ? [] : [{ field, value: field === "server.port" ? numberOf(value) : value }];
  });
  const raw = given.reduce<unknown>((all, { field, value }) => merged(all, nested(field.split("."), value)), {});
  const names = new Map(Object.entries(VARIABLES).map(([name, field]) => [field, name]));
  return checkConfig(raw, { kind: "environment", names });
}

const numberOf = (text: string): number | string => (/^\d{1,9}$/.test(text) ? Number(text) : text);

const nested = (path: readonly string[], value: unknown): unknown =>
  path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value);

const defined = (given: object): object =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));

/** Merges field by field; `over` wins. Lists and texts are replaced as a whole. */
function merged(under: unknown, over: unknown): unknown {
  if (!isRecord(under) || !isRecord(over)) return over ?? under;
  const names = new Set([...Object.keys(under), ...Object.keys(over)]);
  return Object.fromEntries([...names].map((name) => [name, merged(under[name], over[name])]));
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
