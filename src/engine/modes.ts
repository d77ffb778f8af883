// The modes of an agent: their definitions, the current one of a session, and the error for an unknown one.
import type { ControlError } from "../core/errors.ts";
import { invalid, isObject, rejectUnknown } from "../core/input.ts";
import { MODE_CHARS_MAX, MODES_MAX, NOTE_CHARS_MAX, TITLE_CHARS_MAX } from "../core/limits.ts";
import { suggest } from "../core/suggest.ts";
import type { Agent, AgentMode } from "../ports/agent.ts";

const WORD = /^[a-z][a-z0-9-]*$/;

export interface Modes {
  readonly all: readonly AgentMode[];
  /** The mode if none was set. */
  readonly start: string | undefined;
  /** The current mode, given the one that was set. */
  inForce(set: string | undefined): string | undefined;
  /** The error for a value that is not one of them; undefined: it is one. */
  refusal(given: unknown): ControlError | undefined;
}

export function modesOf(agent: Agent): Modes {
  const all = agent.modes ?? [];
  return {
    all,
    start: startOf(agent),
    inForce: (set) => modeInForce(agent, set),
    refusal: (given) => refusal(all, given),
  };
}

/** A mode that was set under another agent, and that this one does not have, counts as not set. */
export function modeInForce(agent: Agent, set: string | undefined): string | undefined {
  return agent.modes?.some(({ id }) => id === set) === true ? set : startOf(agent);
}

const startOf = ({ modes, mode }: Agent): string | undefined => mode ?? modes?.[0]?.id;

function refusal(all: readonly AgentMode[], given: unknown): ControlError | undefined {
  if (typeof given !== "string" || given.length > MODE_CHARS_MAX) return invalid("A mode is a short word.");
  if (all.some(({ id }) => id === given)) return undefined;
  if (all.length === 0) return invalid(`There is no mode ${JSON.stringify(given)}: this agent has no modes.`);
  const ids = all.map(({ id }) => id);
  const meant = suggest(given, ids);
  const advice = meant === undefined ? "" : ` Did you mean ${meant}?`;
  return invalid(`There is no mode ${JSON.stringify(given)}.${advice} The modes are ${ids.join(", ")}.`);
}

/** Validates the modes of an agent, once, when it is given. */
export function checkModes({ modes, mode }: Agent): void {
  if (modes !== undefined && !Array.isArray(modes)) throw invalid("The `modes` of an agent are a list.");
  const all: readonly unknown[] = modes ?? [];
  if (all.length > MODES_MAX) throw invalid(`An agent has at most ${MODES_MAX} modes.`);
  const ids = all.map(checkAgentMode);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw invalid(`The agent has two modes ${JSON.stringify(twice)}.`);
  if (mode !== undefined && !ids.includes(mode)) throw invalid("The `mode` of an agent is one of its `modes`.");
}

function checkAgentMode(given: unknown): string {
  if (!isObject(given)) throw invalid("A mode of an agent is an object with `id` and `name`.");
  const { id, name, description = "", ...rest } = given;
  rejectUnknown(rest, "A mode of an agent");
  if (typeof id !== "string" || id.length > MODE_CHARS_MAX || !WORD.test(id)) {
    throw invalid(`The \`id\` of a mode is a word of small letters, digits and hyphens, at most ${MODE_CHARS_MAX}.`);
  }
  if (typeof name !== "string" || name.trim() === "" || name.length > TITLE_CHARS_MAX) {
    throw invalid(`The mode ${id} has a \`name\` of 1 to ${TITLE_CHARS_MAX} characters.`);
  }
  if (typeof description !== "string" || description.length > NOTE_CHARS_MAX) {
    throw invalid(`The \`description\` of the mode ${id} has at most ${NOTE_CHARS_MAX} characters.`);
  }
  return id;
}
