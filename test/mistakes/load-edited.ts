// Loads edited modules in place of those on disk, in this thread. Modules it has already loaded stay as they are.
import { registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import type { EditedModule } from "./mistake.ts";

export function loadEdited(modules: readonly EditedModule[]): void {
  const texts = new Map(modules.map(({ file, text }) => [pathToFileURL(file).href, text]));
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context);
      const text = texts.get(url);
      return text === undefined ? loaded : { ...loaded, source: text };
    },
  });
}
