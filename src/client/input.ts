// Checks of callers' arguments that need no server: a request that could never be sent is refused at once.
import { ControlError } from "../core/errors.ts";
import { JSON_DEPTH_MAX, KEY_CHARS_MAX, PROMPT_BYTES_MAX } from "../core/limits.ts";
import {
  isCallId,
  isNamedLikeAnId,
  isProcessId,
  isQuestionId,
  isRunId,
  isSessionId,
  type QuestionId,
  type RunId,
  type SessionId,
} from "../core/model/ids.ts";
import { isEmptyPrompt, type Prompt, promptBytes } from "../core/model/prompt.ts";

export const invalid = (message: string, hint?: string): ControlError =>
  new ControlError("invalid", message, hint === undefined ? {} : { hint });

/** `cancel("enough")` and `cancel(null)` are mistakes; the error says what to pass instead. */
export function optionsOf<O extends object>(given: O, of: string): O {
  if (typeof given === "object" && given !== null && !Array.isArray(given)) return given;
  throw invalid(`${of} takes its options as an object, { name: value }.`);
}

export function rejectUnknown(rest: object, what: string): void {
  const unknown = Object.entries(rest).flatMap(([name, value]) => (value === undefined ? [] : [`\`${name}\``]));
  if (unknown.length > 0) throw invalid(`${what} has no ${unknown.join(", ")}.`);
}

/** The token decides the tenant; a client cannot choose it. */
export function rejectTenant(tenant: string | undefined): void {
  if (tenant !== undefined)
    throw invalid("A client has the tenant of its token.", "Connect with a token of that tenant.");
}

export function checkPrompt(given: string | Prompt): Prompt {
  const object: unknown = typeof given === "string" ? { text: given } : given;
  if (typeof object !== "object" || object === null) throw invalid("A prompt is a string, or an object with `text`.");
  const { text, data, ...rest } = object as Readonly<Record<string, unknown>> & Pick<Prompt, "data">;
  rejectUnknown(rest, "A prompt");
  if (typeof text !== "string") throw invalid("A prompt's `text` is a string.");
  if (isEmptyPrompt({ text, data })) throw invalid("The prompt is empty.");
  const prompt = { text: text.toWellFormed(), ...(data === undefined ? {} : { data }) };
  checkJson(data ?? null, "`data`");
  const bytes = promptBytes(prompt);
  if (bytes > PROMPT_BYTES_MAX) throw invalid(`The prompt has ${bytes} bytes; the limit is ${PROMPT_BYTES_MAX}.`);
  return prompt;
}

/** Rejects values that JSON would silently drop or change. */
export function checkJson(given: unknown, what: string, depth = 0): void {
  if (depth > JSON_DEPTH_MAX) throw invalid(`${what} is nested deeper than ${JSON_DEPTH_MAX} levels.`);
  if (given === null || typeof given === "string" || typeof given === "boolean" || Number.isFinite(given)) return;
  if (typeof given !== "object") throw invalid(`${what} contains ${kindOf(given)}; only JSON can be sent.`);
  // An object with `toJSON` defines its own JSON.
  if ("toJSON" in given) return;
  for (const value of Array.isArray(given) ? given : Object.values(given).filter((one) => one !== undefined)) {
    checkJson(value, what, depth + 1);
  }
}

const kindOf = (given: unknown): string => (typeof given === "number" ? String(given) : `a ${typeof given}`);

/** A key is sent in a header and in a path, which allow fewer characters than JSON. */
export function checkKey(given: string | undefined): string | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== "string" || given === "" || given.length > KEY_CHARS_MAX) {
    throw invalid(`An idempotency key is a string of 1 to ${KEY_CHARS_MAX} characters.`);
  }
  if (!/^[!-~](?:[ -~]*[!-~])?$/.test(given) || given === "." || given === "..") {
    throw invalid(
      "Over a network an idempotency key has letters, digits and signs of ASCII, and is not only dots.",
      "Use a digest or an encoded form of it as the key.",
    );
  }
  return given;
}

/**
 * Belay's id of a call, or the model's own, as a path segment. A segment of dots would name its parent: the whole
 * session.
 */
export function callPart(id: string): string {
  if (typeof id === "string" && id !== "" && id !== "." && id !== "..") return encodeURIComponent(id.toWellFormed());
  throw invalid(
    "Over a network the id of a call is a string that is not only dots.",
    "Use Belay's own id of the call.",
  );
}

export function checkSession(id: string): SessionId {
  if (typeof id !== "string" || !isSessionId(id)) {
    throw invalid('A session id begins with "ses_" and has letters, digits, . _ -');
  }
  return id;
}

export function checkRun(id: string): RunId {
  if (typeof id !== "string" || !isRunId(id)) throw invalid('A run id begins with "run_".');
  return id;
}

export function checkQuestion(id: string): QuestionId {
  if (typeof id !== "string" || !isQuestionId(id)) throw invalid('The id of a question begins with "ask_".');
  return id;
}

/** The API collection an id belongs to. Undefined: it looks like an id but is not one of Belay's. */
export function collectionOf(id: string): "sessions" | "runs" | "calls" | "processes" | "questions" | undefined {
  if (typeof id === "string") {
    if (isSessionId(id)) return "sessions";
    if (isRunId(id)) return "runs";
    if (isCallId(id)) return "calls";
    if (isProcessId(id)) return "processes";
    if (isQuestionId(id)) return "questions";
    if (isNamedLikeAnId(id)) return undefined;
  }
  throw invalid('An id begins with "ses_", "run_", "call_", "proc_" or "ask_".');
}

/** Prevents an unhandled rejection; a caller who awaits the promise still sees the error. */
/** The promises of these methods may be dropped: a stop that fails does not end the program. */
export function ignoreUnhandledOf<T extends object>(
  type: { readonly prototype: T },
  methods: readonly (keyof T)[],
): void {
  for (const name of methods) {
    const method = type.prototype[name];
    if (typeof method !== "function") continue;
    const value = function (this: T, ...given: unknown[]): unknown {
      return ignoreUnhandled(method.apply(this, given) as Promise<unknown>);
    };
    Object.defineProperty(type.prototype, name, { value, writable: true, configurable: true });
  }
}

export function ignoreUnhandled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
