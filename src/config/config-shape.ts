// The schema of a configuration, and the messages of its validation errors.
import { z } from "zod";
import { PERMISSION_MODES } from "../agent/permission.ts";
import { ControlError } from "../core/errors.ts";
import { suggest } from "../core/suggest.ts";
import type { BelayConfig } from "./config.ts";

/** Where a setting comes from. Error messages name it. */
export type Source =
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "environment"; readonly names: ReadonlyMap<string, string> }
  | { readonly kind: "flags" };

/** A day. A longer limit is not a limit. */
const DAY_MS = 24 * 60 * 60_000;
const GRACE_MS_MAX = 30_000;
const TEXT_CHARS_MAX = 64 * 1024;
const NAMES_MAX = 256;
const ARGUMENT_CHARS_MAX = 4_096;

const PATH = "must be a path";
const path = z
  .string(PATH)
  .min(1, PATH)
  .max(4_096, PATH)
  .regex(/^[^\0]*$/, PATH);
const integer = (message: string, max: number, min = 1) => z.int(message).min(min, message).max(max, message);
const ms = (max: number) => integer(`must be a whole number of milliseconds from 1 to ${max}`, max);
const count = (max: number) => integer(`must be a whole number from 1 to ${max}`, max);
const amount = integer("must be a whole number above 0", Number.MAX_SAFE_INTEGER);
const days = z.number("must be a number of days above 0").positive("must be a number of days above 0");
const oneOf = <const T extends readonly [string, ...string[]]>(words: T) =>
  z.enum(words, `must be one of ${words.join(", ")}`);
const names = (message: string, pattern: RegExp) =>
  z
    .array(z.string(message).regex(pattern, message), `must be a list; each element ${message}`)
    .max(NAMES_MAX, `must have at most ${NAMES_MAX} elements`);

const OBJECT = "must be an object";
const MODES = `must be a list of some of ${PERMISSION_MODES.join(", ")}`;
const COMMAND = 'must be a program and its arguments, such as ["some-agent", "--acp"]';
const URL_TEXT = 'must be a URL such as "https://models.example.com/v1", without a name and password';
const VARIABLE =
  "must be the name of a variable that ends with _KEY, _TOKEN or _SECRET; do not write the key itself here";

const provider = z.strictObject(
  {
    kind: oneOf(["openai-compatible"]).optional(),
    baseUrl: z.string(URL_TEXT).refine(isPlainUrl, URL_TEXT),
    apiKeyEnv: z
      .string(VARIABLE)
      .regex(/^[A-Z][A-Z0-9_]{0,120}_(KEY|TOKEN|SECRET)$/, VARIABLE)
      .optional(),
  },
  OBJECT,
);

const MODEL = 'must be "PROVIDER/MODEL"';

const TIERS = ["namespace", "cgroup", "anchor", "group"] as const;
const MECHANISMS = ["bubblewrap", "unshare", "cgroup", "anchor", "group"] as const;

const SHAPE = z.strictObject(
  {
    model: z.string(MODEL).min(1, MODEL).max(256, "is too long").optional(),
    workspace: path.optional(),
    directories: oneOf(["workspace", "any"]).optional(),
    store: path.optional(),
    mode: z.enum(PERMISSION_MODES, `must be one of ${PERMISSION_MODES.join(", ")}`).optional(),
    modes: z.array(z.enum(PERMISSION_MODES, MODES), MODES).min(1, MODES).optional(),
    agent: path.optional(),
    acp: z
      .array(z.string(COMMAND).max(ARGUMENT_CHARS_MAX, COMMAND), COMMAND)
      .max(NAMES_MAX, COMMAND)
      .refine(([program = ""]) => program !== "", COMMAND)
      .optional(),
    tools: path.optional(),
    hooks: path.optional(),
    instructions: z
      .union([z.string().max(TEXT_CHARS_MAX), z.strictObject({ file: path })], 'must be a text, or { "file": PATH }')
      .optional(),
    retention: z
      .strictObject(
        {
          perSession: z
            .strictObject({ days: days.optional(), events: amount.optional(), bytes: amount.optional() }, OBJECT)
            .optional(),
          overall: z
            .strictObject({ days: days.optional(), sessions: amount.optional(), bytes: amount.optional() }, OBJECT)
            .optional(),
        },
        OBJECT,
      )
      .optional(),
    limits: z
      .strictObject(
        {
          ...{ runLimitMs: ms(DAY_MS).optional(), graceMs: ms(GRACE_MS_MAX).optional() },
          ...{ commandMs: ms(DAY_MS).optional(), liveRunsMax: count(1_000_000).optional() },
          ...{ turnsMax: count(1_000_000).optional(), tokensMax: count(Number.MAX_SAFE_INTEGER).optional() },
        },
        OBJECT,
      )
      .optional(),
    processes: z
      .strictObject(
        {
          ...{ requireTier: oneOf(TIERS).optional(), mechanism: oneOf(MECHANISMS).optional() },
          ...{ profile: oneOf(["none", "contain", "workspace"]).optional(), cgroup: path.optional() },
          env: z
            .strictObject(
              { allow: names("must be the name of a variable", /^[A-Za-z_][A-Za-z0-9_]*$/).optional() },
              OBJECT,
            )
            .optional(),
        },
        OBJECT,
      )
      .optional(),
    server: z
      .strictObject(
        {
          host: z.string("must be a host name or an IP address").min(1).max(255).optional(),
          port: integer("must be a port, from 0 to 65535", 65_535, 0).optional(),
          socket: path.optional(),
          origins: names('must be an origin such as "https://example.com"', /^https?:\/\/[^/*\s?#]+$/).optional(),
          hosts: names("must be a host name, optionally with a port", /^[^/*\s?#@]+$/).optional(),
          crowd: z
            .strictObject(
              {
                changesPerSecond: count(100_000).optional(),
                streamsPerToken: count(100_000).optional(),
                connections: count(100_000).optional(),
              },
              OBJECT,
            )
            .optional(),
          tls: z.strictObject({ cert: path, key: path }, "must have `cert` and `key`, two files").optional(),
          trustedProxy: z
            .strictObject(
              {
                secretFile: path,
                header: z
                  .string()
                  .regex(/^[A-Za-z-]{1,64}$/)
                  .optional(),
              },
              OBJECT,
            )
            .optional(),
        },
        OBJECT,
      )
      .optional(),
    providers: z
      .record(z.string().regex(/^[a-z0-9][a-z0-9_-]{0,63}$/), provider, "must be an object of providers by name")
      .optional(),
  },
  OBJECT,
);

export function isPlainUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
}

/** Checks a configuration. Throws `invalid` with the field, the problem, and a suggestion for an unknown field. */
export function checkConfig(given: unknown, source: Source): BelayConfig {
  const parsed = SHAPE.safeParse(given);
  // Decoding: the schema matches the type, except that it types optional fields as possibly undefined.
  if (parsed.success) return withoutUndefined(parsed.data) as BelayConfig;
  const [issue] = parsed.error.issues;
  throw new ControlError("invalid", issue === undefined ? "The configuration is not valid." : problem(issue, source), {
    hint: source.kind === "file" ? "Correct the file, then start again." : "Correct it, then start again.",
  });
}

function problem(issue: z.core.$ZodIssue, source: Source): string {
  const at = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    const [key = ""] = issue.keys;
    const known = knownAt(at);
    const meant = suggest(key, known);
    const advice = meant === undefined ? `Known fields: ${known.join(", ")}.` : `Did you mean \`${meant}\`?`;
    return `${where([...at, key], source)} is not a known field. ${advice}`;
  }
  if (issue.code === "invalid_key") {
    return `${where(at, source)} is not a valid name for a provider: use lower-case letters, digits, - and _.`;
  }
  return `${where(at, source)} ${issue.message}.`;
}

function where(at: readonly string[], source: Source): string {
  const field = at.join(".");
  switch (source.kind) {
    case "file":
      return field === "" ? source.path : `${source.path}: \`${field}\``;
    case "environment":
      return source.names.get(field) ?? field;
    case "flags":
      return flagOf(at.filter((step) => !/^\d+$/.test(step)));
  }
}

/** The command-line option of a field. Most are named after their field. */
const flagOf = (at: readonly string[]): string =>
  OTHER_FLAGS[at.join(".")] ?? `--${(at.at(-1) ?? "").replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

const OTHER_FLAGS: Readonly<Record<string, string>> = {
  "server.hosts": "--allow-host",
  "server.origins": "--allow-origin",
  "server.tls.cert": "--tls-cert",
  "server.tls.key": "--tls-key",
  "server.trustedProxy.secretFile": "--behind-proxy",
  "instructions.file": "--instructions",
  "processes.requireTier": "--require",
};

/** The fields that the schema knows at a path. */
function knownAt(at: readonly string[]): readonly string[] {
  let shape: unknown = SHAPE;
  for (const step of at) {
    const open = inner(shape);
    if (open instanceof z.ZodObject) shape = open.shape[step];
    else if (open instanceof z.ZodRecord) shape = open.valueType;
    else return [];
  }
  const last = inner(shape);
  return last instanceof z.ZodObject ? Object.keys(last.shape) : [];
}

const inner = (shape: unknown): unknown => (shape instanceof z.ZodOptional ? shape.unwrap() : shape);

function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined);
  if (typeof value !== "object" || value === null) return value;
  const known = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(known.map(([name, one]) => [name, withoutUndefined(one)]));
}

/**
 * Throws if a configuration contains a key: such files are shown, copied and committed. Runs before all other checks,
 * and never quotes the key.
 */
export function refuseSecrets(given: unknown, file: string): void {
  const left: { readonly value: unknown; readonly at: readonly string[] }[] = [{ value: given, at: [] }];
  // The configuration of a module can contain itself.
  const seen = new Set<unknown>();
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value, at } = next;
    if (typeof value === "string" && (isSecretName(at) || SECRET_VALUE.test(value))) throw secretIn(file, at);
    if (typeof value !== "object" || value === null || seen.has(value)) continue;
    seen.add(value);
    for (const [name, one] of Object.entries(value)) left.push({ value: one, at: [...at, name] });
  }
}

const SECRET_NAME = /^(api[-_]?key|key|token|auth[-_]?token|access[-_]?token|secret|password)$/i;
const SECRET_VALUE = /(^|[^A-Za-z0-9])(sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16}|-----BEGIN )/;

/** `server.tls.key` is the path of a file. */
const isSecretName = (at: readonly string[]): boolean =>
  SECRET_NAME.test(at.at(-1) ?? "") && at.join(".") !== "server.tls.key";

const secretIn = (file: string, at: readonly string[]): ControlError =>
  new ControlError("invalid", `${file}: \`${at.join(".")}\` contains a key. Keys are not read from a configuration.`, {
    hint:
      "Remove it. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or the variable that `apiKeyEnv` names; or add _FILE to the " +
      "name and set it to a file with the key.",
  });
