// Opens a Belay with the agent that the configuration names, for a server or for a command without one.
import { closeSync, existsSync, mkdirSync, openSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { PERMISSION_MODES } from "../../../agent/permission.ts";
import {
  type BelayConfig,
  modulesOf,
  openOptions,
  type ServerConfig,
  type SettledConfig,
} from "../../../config/config.ts";
import { loadConfig } from "../../../config/load-config.ts";
import { type MadeAgent, makeAgent } from "../../../config/make-agent.ts";
import { type Taken, takeSecrets } from "../../../config/secrets.ts";
import { ControlError } from "../../../core/errors.ts";
import type { Retention } from "../../../core/model/retention.ts";
import { STORE_ENDINGS } from "../../../core/own-paths.ts";
import { type Belay, openBelay } from "../../../sdk/belay.ts";
import type { BelayOptions } from "../../../sdk/belay-options.ts";
import type { DataDir } from "../../../sdk/data-dir.ts";
import { HiddenFiles } from "../../../sdk/hidden-files.ts";
import { redactor } from "../../../telemetry/redactor.ts";
import { tierOf } from "../../commands/doctor/doctor.ts";
import { trustOf } from "../../commands/trust/trust.ts";
import type { AgentFlags } from "./agent-options.ts";

/** What must be known before anything is opened. */
export interface RuntimePlan {
  readonly home: DataDir;
  readonly config: SettledConfig;
  /** The store file, or `:memory:`. */
  readonly store: string;
  readonly taken: Taken;
  readonly notices: readonly string[];
  /** The configuration file that was read. */
  readonly configFile: string | undefined;
}

export interface PlanOptions {
  readonly home: DataDir;
  readonly flags: AgentFlags & { readonly store?: string | undefined; readonly retention?: string };
  readonly server?: ServerConfig;
  /** Whether to ask at the terminal about a configuration that is not trusted yet. Default `refuse`. */
  readonly trust?: "ask" | "refuse";
}

/** Reads the configuration, and removes the provider keys from this program's environment. */
export async function makePlan({ home, flags, server, trust = "refuse" }: PlanOptions): Promise<RuntimePlan> {
  const {
    config,
    notices,
    file: configFile,
  } = await loadConfig({
    cwd: process.cwd(),
    flags: { ...configOf(flags), ...(server === undefined ? {} : { server }) },
    env: process.env,
    defaults: { store: home.storeFile },
    trust: trustOf(home, trust),
  });
  if (isDemo(config)) refuseUnused(flags);
  const taken = await takeSecrets(process.env, config);
  return { home, config, store: config.store ?? home.storeFile, taken, notices, configFile };
}

/** Whether the demo agent runs, because no other agent is named. */
const isDemo = ({ agent, model, acp }: SettledConfig): boolean => [agent, model, acp].every((one) => one === undefined);

/** Refuses options that the demo agent would ignore. */
function refuseUnused(flags: AgentFlags): void {
  const unused = (["workspace", "mode", "modes", "tools", "instructions"] as const).filter(
    (name) => flags[name] !== undefined,
  );
  if (unused.length === 0) return;
  const options = unused.map((name) => `--${name}`).join(", ");
  const why = "it is a script that works in its own folder, and asks before it writes";
  throw new ControlError("invalid", `No model is named, and the demo agent takes no ${options}: ${why}.`, {
    hint: `Name an agent with --model or --agent, or leave out ${options}.`,
  });
}

/** Notices about ignored settings of a file or the environment: they may be meant for other agents. */
function unusedNotices({ mode, workspace }: SettledConfig): readonly string[] {
  return [
    ...(mode === "ask"
      ? []
      : [`The demo agent has no modes, and asks before it writes: the mode ${mode} is not used.`]),
    ...(workspace === process.cwd()
      ? []
      : [`The demo agent works in its own folder: the workspace ${workspace} is not used.`]),
  ];
}

function configOf(flags: PlanOptions["flags"]): BelayConfig & { readonly config?: string | false } {
  const { model, agent, tools, instructions, workspace, directories, mode, config, require, store, retention } = flags;
  const { modes } = flags;
  const given = { model, agent, tools, workspace, directories, config, store };
  return {
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
    ...(instructions === undefined ? {} : { instructions: { file: instructions } }),
    ...(mode === undefined ? {} : { mode: modeOf(mode) }),
    ...(modes === undefined ? {} : { modes: modes.split(",").map((word) => modeOf(word.trim())) }),
    ...(retention === undefined ? {} : { retention: retentionOf(retention) }),
    ...(require === undefined ? {} : { processes: { requireTier: tierOf(require) } }),
  };
}

function modeOf(word: string): SettledConfig["mode"] {
  const found = PERMISSION_MODES.find((mode) => mode === word);
  if (found !== undefined) return found;
  throw new ControlError("invalid", `There is no mode "${word.slice(0, 40)}".`, {
    hint: `They are: ${PERMISSION_MODES.join(", ")}.`,
  });
}

const RETENTION_LIMITS = {
  days: ["overall", "days"],
  sessions: ["overall", "sessions"],
  bytes: ["overall", "bytes"],
  "session-days": ["perSession", "days"],
  "session-events": ["perSession", "events"],
  "session-bytes": ["perSession", "bytes"],
} as const;

const BYTE_UNITS: Readonly<Record<string, number>> = { "": 1, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12 };

/** Parses `--retention`, as in `days=90,bytes=2GB,session-days=30`. */
export function retentionOf(typed: string): Retention {
  const limits: Record<"perSession" | "overall", Record<string, number>> = { perSession: {}, overall: {} };
  for (const part of typed.split(",")) {
    const [, name = "", digits = "", unit = ""] = /^\s*([a-z-]+)=(\d+(?:\.\d+)?)([KMGT]B)?\s*$/.exec(part) ?? [];
    const isLimit = Object.hasOwn(RETENTION_LIMITS, name);
    const place = isLimit ? RETENTION_LIMITS[name as keyof typeof RETENTION_LIMITS] : undefined;
    const value = Number(digits) * (BYTE_UNITS[unit] ?? Number.NaN);
    const isBytes = name.endsWith("bytes");
    const isWhole = name.endsWith("days") || Number.isInteger(value);
    if (place === undefined || !(value > 0) || !isWhole || (unit !== "" && !isBytes)) throw notRetention(part);
    limits[place[0]][place[1]] = value;
  }
  return limits;
}

const notRetention = (part: string): ControlError =>
  new ControlError("invalid", `--retention takes limits such as days=90 (got ${JSON.stringify(part.slice(0, 40))}).`, {
    hint: `The limits: ${Object.keys(RETENTION_LIMITS).join(", ")}. Bytes may end with KB, MB, GB or TB.`,
  });

export interface Runtime {
  readonly belay: Belay;
  /** A short description of the agent. */
  readonly agent: string;
  readonly isDemo: boolean;
  readonly workspace: string;
  /** Messages for the user who starts this. */
  readonly notices: readonly string[];
}

export interface RuntimeOptions extends Pick<BelayOptions, "onNotice" | "onRecorded" | "loopWatch"> {
  /** `processes`: tests containment at the start, not when the first process is started. */
  readonly first?: "processes";
  /** The socket of this program, if it is outside its data directory. */
  readonly socket?: string;
  /** Replaces the agent that the configuration names. */
  readonly agent?: GivenAgent;
  /** The store of the plan, if it is already open. */
  readonly opened?: BelayOptions["store"];
}

export interface GivenAgent {
  readonly agent: BelayOptions["agent"];
  /** A short description. */
  readonly describe: string;
  readonly notice?: string;
}

/** Every machine has the lowest tier. Requiring it makes the start test containment. */
const TESTED_AT_START = { requireTier: "group" } as const;

/** Creates a new store file that only its user can read. SQLite gives the files beside it the same mode. */
export function makePrivate(store: string): void {
  if (store === ":memory:" || existsSync(store)) return;
  try {
    closeSync(openSync(store, "wx", 0o600));
  } catch {
    // Another program created it first, or the directory does not exist: opening the store reports which.
  }
}

/**
 * The files that are hidden from commands: a command that reads them could act as the user, and approve the next one by
 * itself. The data directory and the directory of the sockets are hidden completely; the others are single files.
 */
function secretsOf({ home, config, store, taken }: RuntimePlan, socket: string | undefined): readonly string[] {
  const { dir, socketFile } = home;
  const { tls, trustedProxy } = config.server ?? {};
  const kept = store === ":memory:" ? [] : [...STORE_ENDINGS, ".processes"].map((end) => resolve(`${store}${end}`));
  const sockets = [
    ...(socketFile === undefined ? [] : [dirname(socketFile)]),
    ...(socket === undefined ? [] : [socket]),
  ];
  const keys = [tls?.key, trustedProxy?.secretFile].filter((path) => path !== undefined);
  return [dir, ...sockets, ...kept, ...keys, ...taken.files];
}

/** The directory of this program and its packages. */
const PACKAGE = dirname(dirname(dirname(dirname(import.meta.dirname))));

/** The code that the next start runs. It is read-only for commands: one that changed it could act as the server. */
export function executedOf({ config, configFile }: RuntimePlan): readonly string[] {
  const { instructions } = config;
  const named = [configFile, ...modulesOf(config), typeof instructions === "object" ? instructions.file : undefined];
  return [PACKAGE, ...named.flatMap((path) => (path === undefined ? [] : [resolve(path)]))];
}

/** Checks the workspace. Called before any file is created, so that a refused plan leaves none behind. */
export function checkPlan({ config }: RuntimePlan, given: GivenAgent | undefined): void {
  if (given !== undefined || !isDemo(config)) checkWorkspace(config.workspace);
}

function checkWorkspace(workspace: string): void {
  const found = statSync(workspace, { throwIfNoEntry: false });
  if (found?.isDirectory()) return;
  const problem = found === undefined ? "does not exist" : "is not a directory";
  throw new ControlError("invalid", `The workspace ${workspace} ${problem}.`, {
    hint: "Make it first, or name another directory: --workspace DIR.",
  });
}

/** A notice if the workspace is the data directory, which is hidden from commands. */
function hiddenWorkspace(workspace: string, { dir }: DataDir): readonly string[] {
  if (!existsSync(dir) || realpathSync(workspace) !== realpathSync(dir)) return [];
  return [
    `The workspace ${workspace} is Belay's data directory, which commands find empty. Name another: --workspace DIR.`,
  ];
}

/** Opens the Belay of a plan, which resumes the runs in its store. */
export async function openRuntime(plan: RuntimePlan, runtimeOptions: RuntimeOptions): Promise<Runtime> {
  const { home, config, store, taken, notices } = plan;
  const { first, socket, agent: given, opened = store, ...observers } = runtimeOptions;
  const secrets = secretsOf(plan, socket);
  const demo = given === undefined && isDemo(config);
  // The demo's tools work in their own folder, and its commands may not start outside of it.
  const demoFolder = join(home.dir, "demo");
  if (demo) mkdirSync(demoFolder, { recursive: true, mode: 0o700 });
  const workspace = demo ? demoFolder : config.workspace;
  checkWorkspace(workspace);
  const surroundings = { env: process.env, taken, demoFolder, hidden: secrets };
  const made: MadeAgent = given ?? (await makeAgent(config, surroundings));
  const { agent, describe, notice, hooks } = made;
  makePrivate(store);
  const { processes, ...options } = openOptions(config);
  const hidden = new HiddenFiles(typeof opened === "string" ? undefined : store, secrets);
  const belay = await openBelay({
    redact: redactor(plan.taken.secrets),
    ...{ agent, store: opened, ...options, ...observers },
    ...(hooks === undefined ? {} : { hooks }),
    processes: {
      ...(store === ":memory:" ? {} : { dir: `${store}.processes` }),
      ...(first === "processes" ? TESTED_AT_START : {}),
      ...{ ...processes, workspace, hidden: hidden.list(), readOnly: executedOf(plan) },
    },
  });
  void belay.closed.then(() => hidden.close());
  const allNotices = [
    ...notices,
    ...hiddenWorkspace(workspace, home),
    ...(notice?.split("\n") ?? []),
    ...(demo ? unusedNotices(config) : []),
  ];
  return { belay, agent: describe, isDemo: demo, workspace, notices: allNotices };
}
