// Anything at all as JSON of a bounded size, without secrets: for log lines and for previews of events.
//
// Invariants
// 1. Never throws: not for circles, not for getters that throw, not for what JSON does not know.
// 2. A text is redacted before it is cut.
// 3. What was left out is said where it was left out.
import type { Json } from "../core/model/prompt.ts";
import { REDACTED } from "../core/token-patterns.ts";
import { errorRecord } from "./error-record.ts";
import { PREVIEW_DEPTH_MAX, PREVIEW_VALUES_MAX, TEXT_CHARS_MAX, TEXT_CHARS_READ_MAX } from "./limits.ts";
import type { Redact } from "./redactor.ts";

export interface PreviewOptions {
  readonly redact: Redact;
  /** Whether errors are told with the place they come from. */
  readonly stacks?: "always" | "internal";
  readonly textCharsMax?: number;
}

/** JSON as it may be shown to somebody who may not see secrets. Numbers that are a secret go as well. */
export const redactJson = (redact: Redact, value: Json): Json => preview(value, { redact });

export function preview(value: unknown, options: PreviewOptions): Json {
  const walk = new Walk(options);
  return walk.value(value, 0);
}

/** A text of a bounded length, without secrets. */
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
      return "[it cannot be read]";
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
    // Defines, and never assigns: a key called `__proto__` is a key like any other.
    return Object.fromEntries(entries);
  }
}
