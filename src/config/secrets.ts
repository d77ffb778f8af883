// The keys of model providers: removed from the environment once, kept in memory, and passed to the log's redactor.
//
// Limitation: the initial environment of a process stays readable to its user (/proc/PID/environ) while it lives. A key
// in a file, named by a variable that ends with _FILE, is never in it.
import { resolve } from "node:path";
import { ControlError } from "../core/errors.ts";
import type { BelayConfig } from "./config.ts";
import { isFile, readText } from "./config-file.ts";
import type { Environment } from "./load-config.ts";

/** No key is longer; a larger file was named by mistake. */
const KEY_BYTES_MAX = 16 * 1024;

/** Shorter keys are words like "none", for servers that ignore the key. Redacting them would hide ordinary words. */
const SECRET_CHARS_MIN = 8;

const KNOWN: readonly string[] = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"];

export interface Taken {
  /** By the name of the variable. */
  readonly keys: ReadonlyMap<string, string>;
  /** Texts that must not appear in any log. */
  readonly secrets: readonly string[];
  /** The files that keys were read from. The agent's commands must not read them. */
  readonly files: readonly string[];
}

/**
 * Reads the keys and removes them from `env`, normally `process.env`: later readers of the environment do not find
 * them. For an agent from a module or an external program they stay, because it reads its keys itself.
 */
export async function takeSecrets(
  env: Environment,
  { providers = {}, agent, acp }: Pick<BelayConfig, "providers" | "agent" | "acp"> = {},
): Promise<Taken> {
  const own = Object.values(providers).flatMap(({ apiKeyEnv }) => apiKeyEnv ?? []);
  const keys = new Map<string, string>();
  const files: string[] = [];
  for (const name of new Set([...KNOWN, ...own])) {
    const key = await keyOf(env, name);
    const file = env[`${name}_FILE`];
    if (key !== undefined) keys.set(name, key);
    // A pipe was consumed by reading it, so it need not be hidden.
    if (file && (await isFile(file))) files.push(resolve(file));
  }
  for (const name of agent === undefined && acp === undefined ? [...KNOWN, ...own] : []) {
    delete env[name];
    delete env[`${name}_FILE`];
  }
  const secrets = [...new Set(keys.values())].filter((key) => key.length >= SECRET_CHARS_MIN);
  return { keys, secrets, files: acp === undefined ? files : [] };
}

async function keyOf(env: Readonly<Environment>, name: string): Promise<string | undefined> {
  const inline = env[name] || undefined;
  const file = env[`${name}_FILE`] || undefined;
  if (inline !== undefined && file !== undefined) {
    throw invalid(`Both ${name} and ${name}_FILE are set.`, "Set one of them.");
  }
  if (file === undefined) return inline === undefined ? undefined : checkKey(inline.trim(), name);
  const text = await readText(file, KEY_BYTES_MAX).catch((error: unknown) => {
    throw invalid(`The file that ${name}_FILE names cannot be read.`, "Check its path and its mode.", error);
  });
  return checkKey(text.trim(), `${name}_FILE`);
}

/** A key is sent in an HTTP header, so it must be one line of printable ASCII. The error does not quote the key. */
function checkKey(key: string, name: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  const problem = key === "" ? "is empty" : "contains a space, a line break or a character that is not printable ASCII";
  throw invalid(`The key in ${name} ${problem}.`, "A key must be one line without anything else.");
}

const invalid = (message: string, hint: string, cause?: unknown): ControlError =>
  new ControlError("invalid", message, { hint, ...(cause === undefined ? {} : { cause }) });
