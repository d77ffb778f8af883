// A module that people name: loaded, in bounded time, and what is wrong with it told with its path.
import { pathToFileURL } from "node:url";
import { ControlError, messageOf } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";

/** A module does its work when it is asked; to be loaded it needs no longer. */
export const MODULE_MS = 30_000;

/** How much of what went wrong is told: a line of a compiler, and not a page of it. */
const TROUBLE_CHARS_MAX = 500;

export type Exports = Readonly<Record<string, unknown>>;

export async function importModule(path: string, clock: Clock): Promise<Exports> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const disarm = clock.after(MODULE_MS, () => reject(new Error(`it was not loaded within ${MODULE_MS / 1_000} s`)));
  try {
    return await Promise.race([import(pathToFileURL(path).href), late]);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    // The module itself, and not one that it imports.
    if (code === "ERR_MODULE_NOT_FOUND" && messageOf(error).includes(`${path}' imported`)) {
      throw new ControlError("invalid", `${path} does not exist.`, { hint: "Check the path.", cause: error });
    }
    throw new ControlError("invalid", `${path} could not be loaded: ${trouble(error)}`, {
      hint: code === "ERR_UNKNOWN_FILE_EXTENSION" ? OLD_NODE : "Check the path, and run the file by itself.",
      cause: error,
    });
  } finally {
    disarm();
  }
}

const OLD_NODE = "This Node does not run TypeScript. Use one from 22.18 on, or write the file in JavaScript.";

const trouble = (error: unknown): string => {
  const [line = ""] = messageOf(error).split("\n");
  return `${line.slice(0, TROUBLE_CHARS_MAX).replace(/[.\s]+$/, "")}.`;
};

/** The first of these exports that there is. */
export function exportOf(module: Exports, names: readonly string[], path: string): unknown {
  const name = names.find((one) => module[one] !== undefined);
  if (name !== undefined) return module[name];
  const has = Object.keys(module).join(", ") || "nothing";
  throw new ControlError("invalid", `${path} exports no \`${names[0] ?? ""}\`. It exports ${has}.`, {
    hint: `Write \`export const ${names[0] ?? ""} = …\` in it.`,
  });
}
