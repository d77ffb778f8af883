// A tool: what a model may ask for, what it takes, and the function that does it.
import type { LanguageModelV4FunctionTool, LanguageModelV4ProviderTool } from "@ai-sdk/provider";
import { ControlError, messageOf } from "../../core/errors.ts";
import type { Json } from "../../core/model/prompt.ts";
import { suggest } from "../../core/suggest.ts";
import type { Approval, CallRequest, LiveCall } from "../../ports/agent.ts";
import { type Awaitable, chain, type InputSchema, isPromise, type OutputOf, readSchema } from "./tool-schema.ts";
import { type Untrusted, untrusted } from "./untrusted.ts";

/** A longer limit is none, and no timer of the platform takes it. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** How much of what is wrong with an input the model is told: enough to correct it, and not the input once more. */
const ISSUES_TOLD = 8;
const ISSUE_CHARS_MAX = 200;

/** A tool as its author writes it. Either `execute` or `untrusted` does the work. */
export type ToolDefinition<S> = ToolOptions<S> & (ToolExecute<S> | ToolUntrusted);

export interface ToolOptions<S> {
  /** What it does and when to use it, for the model. */
  readonly description: string;
  /** What it takes: a Standard Schema, like one of zod, or `{ jsonSchema, validate? }`. */
  readonly input: S;
  /** May be begun again if a crash left its end unknown. */
  readonly idempotent?: boolean;
  /** False: once begun it does not stop half-way. It is not signalled; it is waited for, and then given up. */
  readonly interruptible?: boolean;
  /** From when it begins; waiting for an approval or a slot does not count. */
  readonly timeoutMs?: number;
  /**
   * People are asked before it begins. A function decides by the input; one that throws has not said that nobody need
   * be asked, so people are.
   */
  readonly approval?: boolean | Approval | ((input: OutputOf<S>) => Awaitable<boolean | Approval>);
}

interface ToolExecute<S> {
  /**
   * Does it. The answer is JSON, or nothing; it is typed as anything because an interface is not a `Json` to the
   * compiler, and checked when it comes.
   */
  readonly execute: (input: OutputOf<S>, call: LiveCall) => unknown;
  readonly untrusted?: never;
}

interface ToolUntrusted {
  /** A function of another module does it, in a thread of its own: it can be stopped even if it does not listen. */
  readonly untrusted: Untrusted;
  readonly execute?: never;
}

export type ToolDescription = LanguageModelV4FunctionTool | LanguageModelV4ProviderTool;

/** A tool as the agent loop uses it, whatever it was made from. */
export interface Tool {
  readonly kind: "tool";
  readonly options: Pick<CallRequest, "idempotent" | "interruptible" | "timeoutMs">;
  /** Whether people may have to be asked before it begins. */
  readonly asks: boolean;
  /** What the model is told of it. Rejects with `invalid` if it cannot be told. */
  describe(name: string): Promise<ToolDescription>;
  /**
   * Whether it takes this input, and whether people must be asked first, in the mode of the session. Never throws; at
   * once where possible.
   */
  judge(input: Json, asked: ToolCallContext): Awaitable<Judged>;
  /** Checks `call.input`, which need not be what was judged, and does it. */
  execute(call: LiveCall): Promise<unknown>;
}

/** What is asked for: the provider's name for it, and the mode of the session, if its agent has any. */
export interface ToolCallContext {
  readonly id: string;
  readonly mode?: string | undefined;
}

export type Judged =
  | { readonly kind: "takes"; readonly approval: boolean | Approval }
  | { readonly kind: "refuses"; readonly issues: readonly string[] };

const OPTIONS: ReadonlySet<string> = new Set<keyof ToolOptions<never> | "execute" | "untrusted">([
  ...(["description", "input", "execute", "untrusted"] as const),
  ...(["idempotent", "interruptible", "timeoutMs", "approval"] as const),
]);

const APPROVAL_OPTIONS: ReadonlySet<string> = new Set<keyof Approval>(["scope", "note", "deadlineMs"]);

/** Defines a tool. What `execute` is given has the type of what the schema makes of the model's input. */
export function tool<const S extends InputSchema<unknown>>(definition: ToolDefinition<S>): Tool {
  checkDefinition(definition);
  // The two say the same of a schema: one to the compiler, about each kind, the other at run time, about any.
  const schema = readSchema(definition.input as InputSchema<OutputOf<S>>);
  const run = definition.untrusted === undefined ? definition.execute : untrusted(definition.untrusted);
  const { description, approval = false } = definition;
  return {
    kind: "tool",
    options: callOptions(definition),
    asks: approval !== false,
    describe: async (name) => ({ type: "function", name, description, inputSchema: await schema.json() }),
    judge: (input) =>
      chain(schema.check(input), (checked) => {
        if (checked.kind === "misfit") return { kind: "refuses", issues: checked.issues };
        return judgement(() => (typeof approval === "function" ? approval(checked.value) : approval));
      }),
    execute: async (call) => {
      const checking = schema.check(call.input);
      const checked = isPromise(checking) ? await checking : checking; // @fault deaf-tool-begins-after-its-stop:check
      if (checked.kind === "misfit") throw misfit(call.name, checked.issues);
      requireGoing(call); // @fault deaf-tool-begins-after-its-stop:going
      return run(checked.value, call);
    },
  };
}

/** The check of an input may take its time; what was stopped meanwhile does not begin, interruptible or not. */
export function requireGoing(call: LiveCall): void {
  call.signal.throwIfAborted();
  if (call.stopping) throw new Error("It was stopped before it began.");
}

/** Whether people must be asked. Whoever cannot tell asks them. */
export function judgement(ask: () => Awaitable<boolean | Approval>): Awaitable<Judged> {
  const unsure = (error: unknown): Judged => ({
    kind: "takes",
    approval: {
      note: `Whether this needs an approval could not be told: ${messageOf(error).slice(0, ISSUE_CHARS_MAX)}`,
    },
  });
  try {
    const asked = chain(ask(), (approval): Judged => ({ kind: "takes", approval }));
    return "then" in asked ? asked.then(undefined, unsure) : asked;
  } catch (error) {
    return unsure(error);
  }
}

/** What the model is told about an input that the tool does not take. */
export function misfit(name: string, issues: readonly string[]): ControlError {
  const told = issues.slice(0, ISSUES_TOLD).map((issue) => issue.slice(0, ISSUE_CHARS_MAX));
  const rest = issues.length - told.length;
  const more = rest > 0 ? `; and ${rest} more` : "";
  return new ControlError(
    "invalid",
    `The input does not fit the schema of \`${name}\`: ${told.join("; ")}${more}. ` +
      "Nothing was done. Correct the input and call it again.",
  );
}

function callOptions({ idempotent, interruptible, timeoutMs }: Tool["options"]): Tool["options"] {
  return {
    ...(idempotent === undefined ? {} : { idempotent }),
    ...(interruptible === undefined ? {} : { interruptible }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}

function checkDefinition<S>(given: ToolDefinition<S>): void {
  if (typeof given !== "object" || given === null) throw invalid("A tool is defined by an object.");
  rejectUnknown(given, OPTIONS, "A tool");
  const { description, idempotent, interruptible, timeoutMs, approval } = given;
  if (typeof description !== "string" || description.trim() === "") {
    throw invalid("A tool has a `description`: the model has nothing else to choose it by.");
  }
  if ((given.execute === undefined) === (given.untrusted === undefined)) {
    throw invalid("A tool has either `execute` or `untrusted`.");
  }
  if (given.execute !== undefined && typeof given.execute !== "function") throw invalid("`execute` is a function.");
  if (given.untrusted !== undefined && interruptible === false) {
    // Nobody would end the thread once such a call has been given up.
    throw invalid("An untrusted tool can always be stopped; it is not `interruptible: false`.");
  }
  for (const [name, value] of Object.entries({ idempotent, interruptible })) {
    if (value !== undefined && typeof value !== "boolean") throw invalid(`\`${name}\` is true or false.`);
  }
  if (timeoutMs !== undefined && !(Number.isInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= TIMEOUT_MS_MAX)) {
    throw invalid(`\`timeoutMs\` is a whole number of milliseconds from 1 to ${TIMEOUT_MS_MAX}.`);
  }
  if (typeof approval === "object" && approval !== null) rejectUnknown(approval, APPROVAL_OPTIONS, "`approval`");
  else if (approval !== undefined && typeof approval !== "boolean" && typeof approval !== "function") {
    throw invalid("`approval` is true or false, an object, or a function of the input.");
  }
}

function rejectUnknown(given: object, known: ReadonlySet<string>, what: string): void {
  const unknown = Object.keys(given).find((key) => !known.has(key));
  if (unknown === undefined) return;
  const meant = suggest(unknown, known);
  const advice = meant === undefined ? `It has ${[...known].join(", ")}.` : `Did you mean \`${meant}\`?`;
  throw invalid(`${what} has no \`${unknown}\`. ${advice}`);
}

const invalid = (message: string): ControlError => new ControlError("invalid", message);
