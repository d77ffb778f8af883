// The agent that a configuration asks for: a module of one's own, somebody else's program, the loop over a model, or
// the demo.

import { userWithAttachments } from "../agent/attachment.ts";
import { modelAgent } from "../agent/loop/agent.ts";
import { isPermissionMode, modalTools, modeHas, PERMISSION_MODES, WORK_MODES } from "../agent/permission.ts";
import { type AnyTool, toolSet } from "../agent/tools/tool-set.ts";
import { ControlError, messageOf } from "../core/errors.ts";
import { withPackage } from "../core/optional-package.ts";
import { STORE_ENDINGS } from "../core/own-paths.ts";
import { demoAgent } from "../demo/demo-agent.ts";
import type { Agent } from "../ports/agent.ts";
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../system/system-clock.ts";
import type { SettledConfig } from "./config.ts";
import { readText } from "./config-file.ts";
import { defaultPrompt } from "./default-prompt.ts";
import type { Environment } from "./load-config.ts";
import { exportOf, importModule } from "./own-module.ts";
import { resolveModel } from "./resolve-model.ts";
import type { Taken } from "./secrets.ts";

/** It goes with every request. */
const INSTRUCTIONS_BYTES_MAX = 64 * 1024;

export interface AgentParts {
  readonly env: Readonly<Environment>;
  readonly taken: Taken;
  /** Where the demo agent works, if it comes to that. Whoever names it also removes it. */
  readonly demoFolder: string;
  /** Files of Belay's own, besides the store: the tools for files do not see them. */
  readonly hidden?: readonly string[];
  readonly clock?: Clock;
}

export interface MadeAgent {
  readonly agent: Agent;
  /** In a few words: "demo agent", "openai/gpt-…", or the path of a module. */
  readonly describe: string;
  /** What whoever starts Belay should know of it. */
  readonly notice?: string;
}

export async function makeAgent(config: SettledConfig, parts: AgentParts): Promise<MadeAgent> {
  if (config.agent !== undefined && config.acp !== undefined) throw twoAgents();
  const isModels = config.model !== undefined && config.agent === undefined && config.acp === undefined;
  if (config.modes !== undefined && !isModels) throw uncapped();
  if (config.agent !== undefined) return ownAgent(config, config.agent, parts.clock ?? systemClock);
  if (config.acp !== undefined) return agentBehind(config, config.acp);
  if (config.model !== undefined) return agentOver(config.model, config, parts);
  const unused = (["tools", "instructions"] as const).filter((name) => config[name] !== undefined);
  return {
    agent: demoAgent({ folder: parts.demoFolder }),
    describe: "demo agent",
    notice: unused.length === 0 ? NO_MODEL : `${NO_MODEL}\nWithout a model these are not used: ${unused.join(", ")}.`,
  };
}

const uncapped = (): ControlError =>
  new ControlError("invalid", "`modes` is for the agent of a model: no other agent can be kept to them.", {
    hint: "Leave --modes out, or name a model with --model.",
  });

const twoAgents = (): ControlError =>
  new ControlError("invalid", "Both `agent` and `acp` are set, and a house has one agent.", {
    hint: "Leave one of them out.",
  });

const NO_MODEL =
  "No model is configured, so this is the demo agent: a script, and no model. To have a real one, set a key and " +
  "name a model: --model anthropic/claude-sonnet-4-5, or BELAY_MODEL, or `model` in belay.config.json.";

/** Somebody else's program: what it may do by itself is its own affair, as far as it does not ask. */
async function agentBehind(config: SettledConfig, command: readonly [string, ...string[]]): Promise<MadeAgent> {
  const { mode, workspace } = config;
  if (mode === "read-only") {
    throw new ControlError("invalid", `The agent ${command[0]} cannot be kept from writing: it is not one of ours.`, {
      hint: "Leave out the mode read-only, and tell the agent itself what it may do.",
    });
  }
  // Loaded when it is asked for: most houses have an agent of their own.
  const load = () => import("../protocols/acp/client/external-agent.ts");
  const { externalAgent } = await withPackage("@agentclientprotocol/sdk", "An agent that speaks ACP", load);
  const agent = externalAgent({ command, cwd: workspace, leave: mode === "auto" ? "give" : "ask" });
  const unused = (["model", "tools", "instructions"] as const).filter((name) => config[name] !== undefined);
  const notice = `The agent is ${command[0]}: ${unused.join(", ")} of the configuration is not used.`;
  return { agent, describe: `the agent behind ${command[0]}`, ...(unused.length === 0 ? {} : { notice }) };
}

async function ownAgent(config: SettledConfig, path: string, clock: Clock): Promise<MadeAgent> {
  const agent = exportOf(await importModule(path, clock), ["agent", "default"], path);
  if (typeof agent !== "function") {
    throw new ControlError("invalid", `The agent that ${path} exports is no function.`, {
      hint: "An agent is a function of a turn, such as `export const agent = async (turn) => …` or modelAgent({ … }).",
    });
  }
  const unused = (["model", "tools", "instructions"] as const).filter((name) => config[name] !== undefined);
  const notice = [
    ...(unused.length > 0
      ? [`The agent of ${path} is your own: ${unused.join(", ")} of the configuration is not used.`]
      : []),
    ...(config.mode === "ask" ? [] : [`The mode ${config.mode} says nothing to an agent of your own.`]),
  ].join("\n");
  // Decoding: a function is all that can be seen of an agent; what it answers is checked turn by turn.
  return { agent: agent as Agent, describe: path, ...(notice === "" ? {} : { notice }) };
}

async function agentOver(name: string, config: SettledConfig, parts: AgentParts): Promise<MadeAgent> {
  const { env, taken, clock = systemClock } = parts;
  const { workspace, mode, modes = PERMISSION_MODES, providers, limits = {} } = config;
  const model = await resolveModel(name, { env, keys: taken.keys, ...(providers === undefined ? {} : { providers }) });
  const own = config.tools === undefined ? {} : await ownTools(config.tools, clock);
  const ours = modalTools({
    files: { workspace, hidden: hiddenPlaces(config, parts) },
    processes: limits.commandMs === undefined ? {} : { timeoutMs: limits.commandMs },
  });
  const twice = Object.keys(own).find((one) => Object.hasOwn(ours, one));
  if (twice !== undefined) throw badTools(config.tools ?? "", `it has a tool \`${twice}\`, which there is already`);
  const isOwn = (tool: string): boolean => Object.hasOwn(own, tool);
  const instructions = await instructionsOf(config);
  const agent = modelAgent({
    model,
    system: ({ cwd, mode: now }) =>
      defaultPrompt({ workspace: cwd ?? workspace, mode: isPermissionMode(now) ? now : mode, instructions }),
    tools: { ...ours, ...own },
    modes: WORK_MODES.filter(({ id }) => modes.includes(id)),
    mode,
    // Nobody can tell whether a tool of somebody else's changes anything.
    offers: (tool, now) => isPermissionMode(now) && modeHas(now, tool) && !(now === "read-only" && isOwn(tool)),
    toUser: userWithAttachments,
    budget: {
      ...(limits.turnsMax === undefined ? {} : { turns: limits.turnsMax }),
      ...(limits.tokensMax === undefined ? {} : { tokens: limits.tokensMax }),
    },
  });
  const notice = `In the mode read-only the tools of ${config.tools ?? ""} are left out: they may change something.`;
  const isLeftOut = mode === "read-only" && Object.keys(own).length > 0;
  return { agent, describe: name, ...(isLeftOut ? { notice } : {}) };
}

/** What SQLite keeps beside its file, and what processes have said, is as private as the file. */
function hiddenPlaces({ store }: SettledConfig, { hidden = [] }: AgentParts): readonly string[] {
  if (store === undefined || store === ":memory:") return hidden;
  return [...hidden, ...[...STORE_ENDINGS, ".processes"].map((end) => `${store}${end}`)];
}

async function ownTools(path: string, clock: Clock): Promise<Readonly<Record<string, AnyTool>>> {
  const given = exportOf(await importModule(path, clock), ["tools", "default"], path);
  const records = Array.isArray(given) ? given : [given];
  const tools: Record<string, AnyTool> = {};
  for (const record of records) {
    if (typeof record !== "object" || record === null || "kind" in record) {
      throw badTools(path, "`tools` is an object of tools by name, or a list of such objects");
    }
    for (const [name, one] of Object.entries(record)) {
      if (Object.hasOwn(tools, name)) throw badTools(path, `it has two tools \`${name}\``);
      // Decoding: `toolSet()` looks at each of them below.
      tools[name] = one as AnyTool;
    }
  }
  try {
    toolSet(tools);
  } catch (error) {
    throw badTools(path, messageOf(error), error);
  }
  return tools;
}

const badTools = (path: string, problem: string, cause?: unknown): ControlError =>
  new ControlError("invalid", `The tools of ${path} cannot be used: ${problem.replace(/\.$/, "")}.`, {
    hint: "Write `export const tools = { name: tool({ … }) }`, with tool() of agent-belay/agent.",
    ...(cause === undefined ? {} : { cause }),
  });

async function instructionsOf({ instructions }: SettledConfig): Promise<string> {
  if (typeof instructions !== "object") return instructions ?? "";
  try {
    return await readText(instructions.file, INSTRUCTIONS_BYTES_MAX);
  } catch (error) {
    if (error instanceof ControlError) throw error;
    throw new ControlError("invalid", `The instructions ${instructions.file} cannot be read.`, {
      hint: "Check the path of `instructions`.",
      cause: error,
    });
  }
}
