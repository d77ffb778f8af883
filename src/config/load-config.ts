// One configuration from what was typed, what the environment says, what the file says, and what is taken otherwise.
import { ControlError } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../system/system-clock.ts";
import type { BelayConfig, SettledConfig } from "./config.ts";
import { absolute, CONFIG_NAMES, readConfigFile, type Trust } from "./config-file.ts";
import { checkConfig } from "./config-shape.ts";

/** As `process.env` is. */
export type Environment = Record<string, string | undefined>;

export interface LoadOptions {
  readonly cwd: string;
  /** What was typed. `config` names the file; false: none is read. Paths are relative to `cwd`. */
  readonly flags: BelayConfig & { readonly config?: string | false };
  readonly env: Readonly<Environment>;
  /** Names that are looked for in `cwd`. Default `belay.config.ts`, `.js`, `.mjs` and `.json`. */
  readonly files?: readonly string[];
  /** What is taken if nobody says otherwise, besides `workspace` (`cwd`) and `mode` (`ask`). */
  readonly defaults?: BelayConfig;
  readonly clock?: Clock;
  /** Decides about a file that was found. Default: none is trusted. */
  readonly trust?: Trust;
}

export interface LoadedConfig {
  readonly config: SettledConfig;
  /** The file that was read. */
  readonly file: string | undefined;
  /** What whoever starts Belay should know: that code was run, or what a found file decides. */
  readonly notices: readonly string[];
}

const VARIABLES: Readonly<Record<string, string>> = {
  ...{ BELAY_MODEL: "model", BELAY_WORKSPACE: "workspace", BELAY_STORE: "store", BELAY_MODE: "mode" },
  ...{ BELAY_AGENT: "agent", BELAY_TOOLS: "tools", BELAY_INSTRUCTIONS_FILE: "instructions.file" },
  ...{ BELAY_HOST: "server.host", BELAY_PORT: "server.port", BELAY_SOCKET: "server.socket" },
};

/** Throws `invalid` with the place, the field, and what is wrong with it. */
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
  const given = absolute(checkConfig(defined(typed), { kind: "flags" }), cwd);
  const around = absolute(fromEnvironment(env), cwd);
  const file = await readConfigFile({ cwd, named: named ?? set(env, "BELAY_CONFIG"), names, clock, trust });
  const sources: readonly BelayConfig[] = [defaults, file?.config ?? {}, around, given];
  const layers = [{ workspace: cwd, mode: "ask" as const }, ...withOneAgent(sources)];
  // Decoding: each layer was checked, and the first has what is always there.
  const config = layers.reduce<unknown>(merged, {}) as SettledConfig;
  const { mode } = layers.slice(1).findLast((layer) => layer.mode !== undefined) ?? {};
  return { config: withinModes(config, mode), file: file?.path, notices: file?.notices ?? [] };
}

/** Each of these names who works, so that they are one choice. */
const AGENT_FIELDS = ["model", "agent", "acp"] as const satisfies readonly (keyof BelayConfig)[];

/** The last source that names an agent decides alone: what the sources before it say of one is left out. */
function withOneAgent(sources: readonly BelayConfig[]): readonly BelayConfig[] {
  const deciding = sources.findLastIndex((source) => AGENT_FIELDS.some((name) => source[name] !== undefined));
  return sources.map((source, at) => {
    if (at >= deciding) return source;
    const { model: _model, agent: _agent, acp: _acp, ...rest } = source;
    return rest;
  });
}

/** A mode beyond the ceiling is refused; where none was chosen, the first that is left holds. */
function withinModes(config: SettledConfig, chosen: SettledConfig["mode"] | undefined): SettledConfig {
  const { modes, mode } = config;
  const [first] = modes ?? [];
  if (modes === undefined || first === undefined || modes.includes(mode)) return config;
  if (chosen === undefined) return { ...config, mode: first };
  throw new ControlError("invalid", `The mode is ${chosen}, and \`modes\` allows only ${modes.join(", ")}.`, {
    hint: "Choose one of them with --mode, or allow it with --modes.",
  });
}

const set = (env: Readonly<Environment>, name: string): string | undefined => env[name] || undefined;

function fromEnvironment(env: Readonly<Environment>): BelayConfig {
  const given = Object.entries(VARIABLES).flatMap(([name, field]) => {
    const value = set(env, name);
    // A port is the one number among them.
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

/** `over` goes before `under`, field by field; lists and texts are taken as a whole. */
function merged(under: unknown, over: unknown): unknown {
  if (!isRecord(under) || !isRecord(over)) return over ?? under;
  const names = new Set([...Object.keys(under), ...Object.keys(over)]);
  return Object.fromEntries([...names].map((name) => [name, merged(under[name], over[name])]));
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
