// Changes modules while they are loaded: the source on disk stays as it is. One thread, one set of edits.
import { registerHooks } from "node:module";
import type { Edit } from "./bugs/bug.ts";

/** From now on, modules this thread loads come with these edits. Modules it has already loaded do not. */
export function patchModules(edits: readonly Edit[]): void {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const mine = edits.filter((edit) => url.endsWith(`/${edit.file}`));
      if (mine.length === 0) return loaded;
      const source = mine.reduce(patch, String(loaded.source));
      return { ...loaded, source };
    },
  });
}

/** A text that is not there exactly once is a corpus out of date, and must not pass for a mistake that was found. */
export function patch(source: string, { file, find, replace }: Edit): string {
  const times = source.split(find).length - 1;
  if (times !== 1) throw new PatchError(`${file} has this ${times} times, not once: ${find}`);
  return source.replace(find, () => replace);
}

export class PatchError extends Error {
  override readonly name = "PatchError";
}
