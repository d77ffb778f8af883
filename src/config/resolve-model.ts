// Resolves a model by name: its provider package, base URL and key. Provider packages are imported on demand.
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { ControlError } from "../core/errors.ts";
import { withPackage } from "../core/optional-package.ts";
import { suggest } from "../core/suggest.ts";
import type { ProviderConfig } from "./config.ts";
import { isPlainUrl } from "./config-shape.ts";
import type { Environment } from "./load-config.ts";

const OPENAI_URL = "https://api.openai.com/v1";
const ANTHROPIC_URL = "https://api.anthropic.com/v1";

export interface ModelSources {
  /** Read for OPENAI_BASE_URL and ANTHROPIC_BASE_URL. */
  readonly env: Readonly<Environment>;
  /** The keys that `takeSecrets()` returned. */
  readonly keys: ReadonlyMap<string, string>;
  readonly providers?: Readonly<Record<string, ProviderConfig>>;
}

/** Resolves a model without sending a request. Throws `invalid`, with the missing setting, if it cannot be used. */
export async function resolveModel(name: string, sources: ModelSources): Promise<LanguageModelV4> {
  const slash = name.indexOf("/");
  const [provider, model] = [name.slice(0, slash), name.slice(slash + 1)];
  if (slash < 1 || model === "") {
    throw invalid(
      `${JSON.stringify(name)} is not the name of a model: it must be PROVIDER/MODEL.`,
      `For example openai/${slash === -1 ? name : "gpt-5.1"} or anthropic/claude-sonnet-4-5.`,
    );
  }
  const own = Object.hasOwn(sources.providers ?? {}, provider) ? sources.providers?.[provider] : undefined;
  if (own !== undefined) return compatible(provider, model, own.baseUrl, ownKey(provider, own, sources));
  if (provider === "openai") return openai(model, sources);
  if (provider === "anthropic") return anthropic(model, sources);
  const known = ["openai", "anthropic", ...Object.keys(sources.providers ?? {})];
  const meant = suggest(provider, known);
  const advice = meant === undefined ? `Known providers: ${known.join(", ")}.` : `Did you mean ${meant}/${model}?`;
  throw invalid(
    `There is no provider ${JSON.stringify(provider)}. ${advice}`,
    "Add your own providers to `providers` in the configuration, each with a `baseUrl`.",
  );
}

async function openai(model: string, { env, keys }: ModelSources): Promise<LanguageModelV4> {
  const baseURL = baseUrl(env, "OPENAI_BASE_URL") ?? OPENAI_URL;
  const apiKey = keys.get("OPENAI_API_KEY");
  // Few other servers implement OpenAI's newer Responses API, and many need no key.
  if (new URL(baseURL).hostname !== "api.openai.com") return compatible("openai", model, baseURL, apiKey);
  if (apiKey === undefined) throw noKey(`openai/${model}`, "OPENAI_API_KEY");
  const { createOpenAI } = await withPackage("@ai-sdk/openai", `openai/${model}`, () => import("@ai-sdk/openai"));
  return createOpenAI({ apiKey, baseURL })(model);
}

async function anthropic(model: string, { env, keys }: ModelSources): Promise<LanguageModelV4> {
  const given = baseUrl(env, "ANTHROPIC_BASE_URL");
  const apiKey = keys.get("ANTHROPIC_API_KEY");
  if (apiKey === undefined) throw noKey(`anthropic/${model}`, "ANTHROPIC_API_KEY");
  const load = () => import("@ai-sdk/anthropic");
  const { createAnthropic } = await withPackage("@ai-sdk/anthropic", `anthropic/${model}`, load);
  return createAnthropic({ apiKey, baseURL: given === undefined ? ANTHROPIC_URL : versioned(given) })(model);
}

/** Some programs set the variable with the version in the path, some without; the package needs it. */
const versioned = (url: string): string => (/\/v\d+$/.test(url) ? url : `${url}/v1`);

async function compatible(
  name: string,
  model: string,
  baseURL: string,
  apiKey: string | undefined,
): Promise<LanguageModelV4> {
  const load = () => import("@ai-sdk/openai-compatible");
  const { createOpenAICompatible } = await withPackage("@ai-sdk/openai-compatible", `${name}/${model}`, load);
  const url = baseURL.replace(/\/+$/, "");
  return createOpenAICompatible({
    ...{ name, baseURL: url, includeUsage: true },
    ...(apiKey === undefined ? {} : { apiKey }),
  })(model);
}

function ownKey(provider: string, { apiKeyEnv }: ProviderConfig, { keys }: ModelSources): string | undefined {
  if (apiKeyEnv === undefined) return undefined;
  const key = keys.get(apiKeyEnv);
  if (key === undefined) throw noKey(`the provider ${provider}`, apiKeyEnv);
  return key;
}

function baseUrl(env: Readonly<Environment>, name: string): string | undefined {
  const given = env[name]?.trim() || undefined;
  if (given === undefined) return undefined;
  // The value is not repeated: it may contain a password, which must not appear in a log.
  if (!isPlainUrl(given)) throw invalid(`${name} is not a usable URL.`, "For example http://127.0.0.1:11434/v1.");
  return given.replace(/\/+$/, "");
}

const noKey = (what: string, variable: string): ControlError =>
  invalid(
    `There is no key for ${what}: ${variable} is not set.`,
    `Set ${variable}, or ${variable}_FILE to a file that has the key.`,
  );

const invalid = (message: string, hint: string): ControlError => new ControlError("invalid", message, { hint });
