// Keys of providers: taken out of the environment once, kept in memory, and known to whoever writes logs.
//
// What this cannot do: the block of variables a program was started with stays readable to its own user while it lives.
// A key in a file, named by a variable that ends with _FILE, was never in it.
import { resolve } from "node:path";
import { ControlError } from "../core/errors.ts";
import type { BelayConfig } from "./config.ts";
import { isFile, readText } from "./config-file.ts";
import type { Environment } from "./load-config.ts";

/** No key is longer; a file that is was named by mistake. */
const KEY_BYTES_MAX = 16 * 1024;

/** A shorter one is a word like "none", for servers that want one and do not look. To hide it would hide words. */
const SECRET_CHARS_MIN = 8;

const KNOWN: readonly string[] = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"];

export interface Taken {
  /** By the name of the variable. */
  readonly keys: ReadonlyMap<string, string>;
  /** What must not appear in any log. */
  readonly secrets: readonly string[];
  /** The files that keys were read from, and that commands of the agent have no business with. */
  readonly files: readonly string[];
}

/**
 * Reads the keys and removes them from `env`, which is meant to be `process.env`: from then on nothing that reads the
 * environment finds them. An agent of one's own, or of somebody else's, reads its keys itself, so for it they stay.
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
    // A pipe was read to its end and is no file any more.
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

/** It is sent as a header, which has no room for more. What is wrong is told without the key. */
function checkKey(key: string, name: string): string {
  if (/^[\x21-\x7e]+$/.test(key)) return key;
  const problem = key === "" ? "is empty" : "holds a space, a line break or a character that no key has";
  throw invalid(`The key in ${name} ${problem}.`, "A key is one line, and nothing else is with it.");
}

const invalid = (message: string, hint: string, cause?: unknown): ControlError =>
  new ControlError("invalid", message, { hint, ...(cause === undefined ? {} : { cause }) });
