// A tool: its description and input schema for the model, and the function that executes it.
import type { LanguageModelV4FunctionTool, LanguageModelV4ProviderTool } from "@ai-sdk/provider";
import { ControlError, messageOf } from "../../core/errors.ts";
import type { Json } from "../../core/model/prompt.ts";
import { suggest } from "../../core/suggest.ts";
import type { Approval, CallRequest, LiveCall } from "../../ports/agent.ts";
import { type Awaitable, chain, type InputSchema, isPromise, type OutputOf, readSchema } from "./tool-schema.ts";
import { type Untrusted, untrusted } from "./untrusted.ts";

/** The longest delay that a platform timer accepts. */
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** How many issues of an invalid input the model sees: enough to correct it without repeating the whole input. */
const ISSUES_SHOWN_MAX = 8;
const ISSUE_CHARS_MAX = 200;

/** The definition of a tool. Either `execute` or `untrusted` does the work. */
export type ToolDefinition<S> = ToolOptions<S> & (ToolExecute<S> | ToolUntrusted);

export interface ToolOptions<S> {
  /** What the tool does and when to use it, for the model. */
  readonly description: string;
  /** The input schema: a Standard Schema, such as one of zod, or `{ jsonSchema, validate? }`. */
  readonly input: S;
  /** Whether a call may be executed again if a crash left its outcome unknown. */
  readonly idempotent?: boolean;
  /** False: a call that has begun is not signalled to stop. It is awaited, and abandoned after the grace period. */
  readonly interruptible?: boolean;
  /** Time limit from the start of execution; waiting for approval or a slot does not count. */
  readonly timeoutMs?: number;
  /**
   * Whether approval is required before a call begins. A function decides by the input; if it throws, approval is
   * required.
   */
  readonly approval?: boolean | Approval | ((input: OutputOf<S>) => Awaitable<boolean | Approval>);
}

interface ToolExecute<S> {
  /**
   * Executes a call. The result must be JSON or undefined; this is checked at run time, because an interface type is
   * not assignable to `Json`.
   */
  readonly execute: (input: OutputOf<S>, call: LiveCall) => unknown;
  readonly untrusted?: never;
}

interface ToolUntrusted {
  /**
   * The function of another module that executes calls in a worker thread, which can be stopped even if it ignores the
   * signal.
   */
  readonly untrusted: Untrusted;
  readonly execute?: never;
}

export type ToolDescription = LanguageModelV4FunctionTool | LanguageModelV4ProviderTool;

/** A tool as the agent loop uses it, whatever it was made from. */
export interface Tool {
  readonly kind: "tool";
  readonly options: Pick<CallRequest, "idempotent" | "interruptible" | "timeoutMs">;
  /** Whether a call may require approval. */
  readonly asks: boolean;
  /** The description for the model. Rejects with `invalid` if there is none. */
  describe(name: string): Promise<ToolDescription>;
  /**
   * Checks the input, and decides whether approval is required in the session's mode. Never throws; synchronous where
   * possible.
   */
  judge(input: Json, context: ToolCallContext): Awaitable<Judged>;
  /** Checks `call.input`, which may differ from the judged input, and executes the call. */
  execute(call: LiveCall): Promise<unknown>;
}

/** The call to judge: the provider's id for it, and the mode of the session, if its agent has modes. */
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

/** Defines a tool. `execute` receives the output type of the schema. */
export function tool<const S extends InputSchema<unknown>>(definition: ToolDefinition<S>): Tool {
  checkDefinition(definition);
  // The type-level and the run-time reading of a schema agree; the compiler cannot see that.
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
      throwIfStopped(call); // @fault deaf-tool-begins-after-its-stop:going
      return run(checked.value, call);
    },
  };
}

/** Throws if the call was stopped while its input was checked, interruptible or not. */
export function throwIfStopped(call: LiveCall): void {
  call.signal.throwIfAborted();
  if (call.stopping) throw new Error("It was stopped before it began.");
}

/** Decides whether approval is required. If the callback throws, it is. */
export function judgement(ask: () => Awaitable<boolean | Approval>): Awaitable<Judged> {
  const unsure = (error: unknown): Judged => ({
    kind: "takes",
    approval: {
      note: `The approval callback failed: ${messageOf(error).slice(0, ISSUE_CHARS_MAX)}`,
    },
  });
  try {
    const judged = chain(ask(), (approval): Judged => ({ kind: "takes", approval }));
    return "then" in judged ? judged.then(undefined, unsure) : judged;
  } catch (error) {
    return unsure(error);
  }
}

/** The error for an invalid input. */
export function misfit(name: string, issues: readonly string[]): ControlError {
  const shownIssues = issues.slice(0, ISSUES_SHOWN_MAX).map((issue) => issue.slice(0, ISSUE_CHARS_MAX));
  const rest = issues.length - shownIssues.length;
  const more = rest > 0 ? `; and ${rest} more` : "";
  return new ControlError(
    "invalid",
    `The input does not fit the schema of \`${name}\`: ${shownIssues.join("; ")}${more}. ` +
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
  if (typeof given !== "object" || given === null) throw invalid("The definition of a tool must be an object.");
  rejectUnknown(given, OPTIONS, "A tool");
  const { description, idempotent, interruptible, timeoutMs, approval } = given;
  if (typeof description !== "string" || description.trim() === "") {
    throw invalid("A tool must have a `description`: the model chooses tools by it.");
  }
  if ((given.execute === undefined) === (given.untrusted === undefined)) {
    throw invalid("A tool must have either `execute` or `untrusted`.");
  }
  if (given.execute !== undefined && typeof given.execute !== "function")
    throw invalid("`execute` must be a function.");
  if (given.untrusted !== undefined && interruptible === false) {
    // The thread of an abandoned call would never be terminated.
    throw invalid("An untrusted tool can always be stopped; it cannot have `interruptible: false`.");
  }
  for (const [name, value] of Object.entries({ idempotent, interruptible })) {
    if (value !== undefined && typeof value !== "boolean") throw invalid(`\`${name}\` must be true or false.`);
  }
  if (timeoutMs !== undefined && !(Number.isInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= TIMEOUT_MS_MAX)) {
    throw invalid(`\`timeoutMs\` must be a whole number of milliseconds from 1 to ${TIMEOUT_MS_MAX}.`);
  }
  if (typeof approval === "object" && approval !== null) rejectUnknown(approval, APPROVAL_OPTIONS, "`approval`");
  else if (approval !== undefined && typeof approval !== "boolean" && typeof approval !== "function") {
    throw invalid("`approval` must be true or false, an object, or a function of the input.");
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
