// Imports a user's module with a timeout. Every error names the path of the module.
import { pathToFileURL } from "node:url";
import { ControlError, messageOf } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";

/** Timeout of an import. A module should do its work when it is called, not while it is loaded. */
export const MODULE_MS = 30_000;

/** Maximum length of a quoted error: a line of a compiler, not a page. */
const ERROR_CHARS_MAX = 500;

export type Exports = Readonly<Record<string, unknown>>;

export async function importModule(path: string, clock: Clock): Promise<Exports> {
  const { promise: timeout, reject } = Promise.withResolvers<never>();
  const cancelTimer = clock.after(MODULE_MS, () => reject(new Error(`loading took more than ${MODULE_MS / 1_000} s`)));
  try {
    return await Promise.race([import(pathToFileURL(path).href), timeout]);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // The module itself is missing, not one that it imports.
    if (code === "ERR_MODULE_NOT_FOUND" && messageOf(error).includes(`${path}' imported`)) {
      throw new ControlError("invalid", `${path} does not exist.`, { hint: "Check the path.", cause: error });
    }
    throw new ControlError("invalid", `${path} could not be loaded: ${firstLine(error)}`, {
      hint: code === "ERR_UNKNOWN_FILE_EXTENSION" ? OLD_NODE : "Check the path, and run the file by itself.",
      cause: error,
    });
  } finally {
    cancelTimer();
  }
}

const OLD_NODE = "This Node.js cannot run TypeScript. Use 22.18 or newer, or write the file in JavaScript.";

const firstLine = (error: unknown): string => {
  const [line = ""] = messageOf(error).split("\n");
  return `${line.slice(0, ERROR_CHARS_MAX).replace(/[.\s]+$/, "")}.`;
};

/** Returns the first of the named exports that exists. Throws `invalid` if none does. */
export function exportOf(module: Exports, names: readonly string[], path: string): unknown {
  const name = names.find((one) => module[one] !== undefined);
  if (name !== undefined) return module[name];
  const has = Object.keys(module).join(", ") || "nothing";
  throw new ControlError("invalid", `${path} does not export \`${names[0] ?? ""}\`. It exports ${has}.`, {
    hint: `Add \`export const ${names[0] ?? ""} = …\`.`,
  });
}
