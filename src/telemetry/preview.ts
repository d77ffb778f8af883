// Converts any value, errors included, to JSON of bounded size without secrets: for log lines and previews of events.
//
// Invariants
// 1. It never throws, even for cycles, throwing getters and values that JSON cannot represent.
// 2. A text is redacted before it is truncated.
// 3. Every omission is marked in its place.
import type { Json } from "../core/model/prompt.ts";
import { REDACTED } from "../core/token-patterns.ts";
import { CAUSES_MAX, PREVIEW_DEPTH_MAX, PREVIEW_VALUES_MAX, TEXT_CHARS_MAX, TEXT_CHARS_READ_MAX } from "./limits.ts";
import type { Redact } from "./redactor.ts";

export interface PreviewOptions {
  readonly redact: Redact;
  /** Which errors include their stack. Default: internal ones. */
  readonly stacks?: "always" | "internal";
  readonly textCharsMax?: number;
}

/** Returns a copy of the JSON without secrets. Numbers that are a secret are redacted, too. */
export const redactJson = (redact: Redact, value: Json): Json => preview(value, { redact });

export function preview(value: unknown, options: PreviewOptions): Json {
  const walk = new Walk(options);
  return walk.value(value, 0);
}

/** Redacts and then truncates a text. */
export function previewText(text: string, redact: Redact, charsMax = TEXT_CHARS_MAX): string {
  if (text.length > TEXT_CHARS_READ_MAX) return `[a text of ${text.length} characters]`;
  const safe = redact(text.toWellFormed());
  if (safe.length <= charsMax) return safe;
  return `${safe.slice(0, charsMax).toWellFormed()}[and ${safe.length - charsMax} more characters]`;
}

class Walk {
  readonly #options: PreviewOptions;
  #left = PREVIEW_VALUES_MAX;

  constructor(options: PreviewOptions) {
    this.#options = options;
  }

  value(value: unknown, depth: number): Json {
    this.#left -= 1;
    switch (typeof value) {
      case "string":
        return this.#text(value);
      case "number":
        return this.#number(value);
      case "boolean":
        return value;
      case "object":
        return value === null ? null : this.#object(value, depth);
      case "undefined":
        return null;
      case "bigint":
      case "symbol":
        return this.#text(String(value));
      case "function":
        return "[a function]";
    }
  }

  #text(text: string): string {
    return previewText(text, this.#options.redact, this.#options.textCharsMax);
  }

  #number(value: number): Json {
    const text = String(value);
    if (this.#options.redact(text) !== text) return REDACTED;
    return Number.isFinite(value) ? value : text;
  }

  #object(value: object, depth: number): Json {
    if (depth >= PREVIEW_DEPTH_MAX) return "[nested too deeply]";
    try {
      if (value instanceof Error) return this.value(errorRecord(value, this.#options.stacks ?? "internal"), depth);
      if (Array.isArray(value)) return this.#list(value, depth);
      if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
      if ("toJSON" in value && typeof value.toJSON === "function") return this.value(value.toJSON(), depth + 1);
      return this.#record(value, depth);
    } catch {
      return "[unreadable]";
    }
  }

  #list(values: readonly unknown[], depth: number): Json {
    const list: Json[] = [];
    for (const one of values) {
      if (this.#left <= 0) {
        list.push(`[and ${values.length - list.length} more]`);
        break;
      }
      list.push(this.value(one, depth + 1));
    }
    return list;
  }

  #record(value: object, depth: number): Json {
    const entries: [string, Json][] = [];
    for (const key in value) {
      if (!Object.hasOwn(value, key)) continue;
      if (this.#left <= 0) {
        entries.push(["…", "[and more]"]);
        break;
      }
      const one: unknown = Reflect.get(value, key);
      if (one !== undefined) entries.push([this.#text(key), this.value(one, depth + 1)]);
    }
    // `fromEntries` defines properties and never assigns them: a key `__proto__` is a key like any other.
    return Object.fromEntries(entries);
  }
}

/** An error as plain data, with the field names that log shippers expect. */
interface ErrorRecord {
  readonly type: string;
  readonly message: string;
  readonly code?: string | number;
  readonly stack?: string;
  readonly cause?: unknown;
  readonly errors?: readonly unknown[];
}

/** A stack reveals paths, so with `internal` only bugs and internal errors include it, not the mistakes of clients. */
function errorRecord(error: Error, stacks: "always" | "internal", causes = CAUSES_MAX): ErrorRecord {
  const code = codeOf(error);
  // The causes of an internal error are needed with their stacks, too.
  const withStack = stacks === "always" || code === "internal" || error.name === "Bug" ? "always" : "internal";
  const more = (one: unknown): unknown =>
    one instanceof Error ? (causes > 0 ? errorRecord(one, withStack, causes - 1) : "[and more causes]") : one;
  return {
    type: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    ...(withStack === "always" && typeof error.stack === "string" ? { stack: error.stack } : {}),
    ...(error.cause === undefined ? {} : { cause: more(error.cause) }),
    ...(error instanceof AggregateError ? { errors: error.errors.slice(0, CAUSES_MAX).map(more) } : {}),
  };
}

function codeOf(error: Error): string | number | undefined {
  const code: unknown = "code" in error ? error.code : undefined;
  return typeof code === "string" || typeof code === "number" ? code : undefined;
}
