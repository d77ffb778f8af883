// The works of a house: the configuration, the agent it asks for, and the library opened with both. With a server
// around it, or without one.
import { closeSync, existsSync, mkdirSync, openSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { PERMISSION_MODES } from "../../../agent/permission.ts";
import { type BelayConfig, openOptions, type ServerConfig, type SettledConfig } from "../../../config/config.ts";
import { loadConfig } from "../../../config/load-config.ts";
import { type MadeAgent, makeAgent } from "../../../config/make-agent.ts";
import { type Taken, takeSecrets } from "../../../config/secrets.ts";
import { ControlError } from "../../../core/errors.ts";
import { STORE_ENDINGS } from "../../../core/own-paths.ts";
import { type Belay, openBelay } from "../../../sdk/belay.ts";
import type { BelayOptions } from "../../../sdk/belay-options.ts";
import type { DataDir } from "../../../sdk/data-dir.ts";
import { HiddenFiles } from "../../../sdk/hidden-files.ts";
import { redactor } from "../../../telemetry/redactor.ts";
import { tierOf } from "../../commands/doctor/doctor.ts";
import { trustOf } from "../../commands/trust/trust.ts";
import type { AgentFlags } from "./agent-options.ts";
import { retentionOf } from "./retention-flag.ts";

/** Everything that has to be known before anything is opened. */
export interface RuntimePlan {
  readonly home: DataDir;
  readonly config: SettledConfig;
  /** Where everything is kept: a file, or `:memory:`. */
  readonly store: string;
  readonly taken: Taken;
  readonly notices: readonly string[];
  /** The configuration that was read. */
  readonly configFile: string | undefined;
}

export interface PlanOptions {
  readonly home: DataDir;
  readonly flags: AgentFlags & { readonly store?: string | undefined; readonly retention?: string };
  readonly server?: ServerConfig;
  /** Whether a configuration that is not trusted yet may be asked about at the terminal. Default `refuse`. */
  readonly trust?: "ask" | "refuse";
}

/** Reads the configuration, and takes the keys of providers out of this program's environment. */
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
  if (isDemo(config)) refuseIdle(flags);
  const taken = await takeSecrets(process.env, config);
  return { home, config, store: config.store ?? home.storeFile, taken, notices, configFile };
}

/** Nobody else is named. */
const isDemo = ({ agent, model, acp }: SettledConfig): boolean => [agent, model, acp].every((one) => one === undefined);

/** Whoever types one of these means something by it, and the demo agent would go on as if they had not. */
function refuseIdle(flags: AgentFlags): void {
  const idle = (["workspace", "mode", "modes", "tools", "instructions"] as const).filter(
    (name) => flags[name] !== undefined,
  );
  if (idle.length === 0) return;
  const options = idle.map((name) => `--${name}`).join(", ");
  const why = "it is a script that works in a folder of its own, and asks before it writes";
  throw new ControlError("invalid", `No model is named, and the demo agent takes no ${options}: ${why}.`, {
    hint: `Name who is to work, with --model or --agent; or leave out ${options}.`,
  });
}

/** What a file or the environment says, and may say for another day: no reason to refuse, but to be told. */
function idleNotices({ mode, workspace }: SettledConfig): readonly string[] {
  return [
    ...(mode === "ask"
      ? []
      : [`The demo agent has no modes, and asks before it writes: the mode ${mode} is not used.`]),
    ...(workspace === process.cwd()
      ? []
      : [`The demo agent works in a folder of its own: the workspace ${workspace} is not used.`]),
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

export interface Runtime {
  readonly belay: Belay;
  /** Who works, in a few words. */
  readonly agent: string;
  readonly isDemo: boolean;
  readonly workspace: string;
  /** What whoever starts this should know. */
  readonly notices: readonly string[];
}

export interface RuntimeOptions extends Pick<BelayOptions, "onNotice" | "onRecorded" | "loopWatch"> {
  /** `processes`: how surely they are held is found out at once, and not when the first one is wanted. */
  readonly first?: "processes";
  /** Where it is reached, if that is not known from its home. */
  readonly socket?: string;
  /** Works instead of the one that the configuration names. */
  readonly agent?: GivenAgent;
  /** The store of the plan, opened already. */
  readonly opened?: BelayOptions["store"];
}

export interface GivenAgent {
  readonly agent: BelayOptions["agent"];
  /** In a few words. */
  readonly describe: string;
  readonly notice?: string;
}

/** The last tier is what every machine has. Requiring it has it tested before anything else. */
const LOOKED_AFTER = { requireTier: "group" } as const;

/** A new store is nobody else's to read, wherever it is; what SQLite puts beside it takes after it. */
export function makePrivate(store: string): void {
  if (store === ":memory:" || existsSync(store)) return;
  try {
    closeSync(openSync(store, "wx", 0o600));
  } catch {
    // Somebody was faster, or there is no such place: opening it says which.
  }
}

/**
 * A command that reads these could speak as the owner, and approve the next one by itself. The data directory is hidden
 * as a whole, and so is a directory for sockets of ours; the others are files elsewhere.
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

/** Where this program lies, with the packages it brings. */
const PACKAGE = dirname(dirname(dirname(dirname(import.meta.dirname))));

/** What the next start runs: a command that changes it would act as the server then. */
function executedOf({ config, configFile }: RuntimePlan): readonly string[] {
  const { agent, tools, instructions } = config;
  const named = [configFile, agent, tools, typeof instructions === "object" ? instructions.file : undefined];
  return [PACKAGE, ...named.flatMap((path) => (path === undefined ? [] : [resolve(path)]))];
}

/** To be asked before anything is made: a plan whose workspace is missing leaves no trace. */
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

/** What is hidden from commands is hidden from them there as well. */
function hiddenWorkspace(workspace: string, { dir }: DataDir): readonly string[] {
  if (!existsSync(dir) || realpathSync(workspace) !== realpathSync(dir)) return [];
  return [
    `The workspace ${workspace} is Belay's data directory, which commands find empty. Name another: --workspace DIR.`,
  ];
}

/** Opens the store and takes up what an earlier life left. */
export async function openRuntime(plan: RuntimePlan, wish: RuntimeOptions): Promise<Runtime> {
  const { home, config, store, taken, notices } = plan;
  const { first, socket, agent: given, opened = store, ...ears } = wish;
  const secrets = secretsOf(plan, socket);
  const demo = given === undefined && isDemo(config);
  // The demo's tools work in a folder of their own, and its commands may not begin outside of it.
  const demoFolder = join(home.dir, "demo");
  if (demo) mkdirSync(demoFolder, { recursive: true, mode: 0o700 });
  const workspace = demo ? demoFolder : config.workspace;
  checkWorkspace(workspace);
  const around = { env: process.env, taken, demoFolder, hidden: secrets };
  const made: MadeAgent = given ?? (await makeAgent(config, around));
  const { agent, describe, notice, hooks } = made;
  makePrivate(store);
  const { processes, ...options } = openOptions(config);
  const hidden = new HiddenFiles(typeof opened === "string" ? undefined : store, secrets);
  const belay = await openBelay({
    redact: redactor(plan.taken.secrets),
    ...{ agent, store: opened, ...options, ...ears },
    ...(hooks === undefined ? {} : { hooks }),
    processes: {
      ...(store === ":memory:" ? {} : { dir: `${store}.processes` }),
      ...(first === "processes" ? LOOKED_AFTER : {}),
      ...{ ...processes, workspace, hidden: hidden.list(), readOnly: executedOf(plan) },
    },
  });
  void belay.closed.then(() => hidden.close());
  const told = [
    ...notices,
    ...hiddenWorkspace(workspace, home),
    ...(notice?.split("\n") ?? []),
    ...(demo ? idleNotices(config) : []),
  ];
  return { belay, agent: describe, isDemo: demo, workspace, notices: told };
}
