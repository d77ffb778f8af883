// Packages that only some uses of Belay need: optional peer dependencies, loaded when they are used.
import { ControlError } from "./errors.ts";

/** As in `package.json`. The ACP SDK is pinned, because version 2 of the protocol is a draft. */
export const OPTIONAL_PACKAGES = {
  "@agentclientprotocol/sdk": "2.4.0",
  "@ai-sdk/anthropic": "^4.0.102",
  "@ai-sdk/openai": "^4.0.114",
  "@ai-sdk/openai-compatible": "^3.0.90",
  "@ai-sdk/provider": "^4.0.37",
  "@opentelemetry/api": "^1.10.0",
} as const satisfies Readonly<Record<string, string>>;

export type OptionalPackage = keyof typeof OPTIONAL_PACKAGES;

/** Throws `invalid` with the install command if the package is missing. Other errors are passed on. */
export async function withPackage<T>(name: OptionalPackage, purpose: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (!isMissing(error, name)) throw error;
    throw new ControlError("invalid", `${purpose} needs the package ${name}, which is not installed.`, {
      hint: `Install it beside agent-belay: ${installLine(name)}`,
      cause: error,
    });
  }
}

export const installLine = (name: OptionalPackage): string => `npm install "${name}@${OPTIONAL_PACKAGES[name]}"`;

/** A package that this one imports may be missing as well: that is another error. */
export function isMissing(error: unknown, name: OptionalPackage): boolean {
  return (
    error instanceof Error &&
    "code" in error &&
    error.code === "ERR_MODULE_NOT_FOUND" &&
    error.message.includes(`'${name}'`)
  );
}
