// Locates the module of a worker thread, which is a separate file beside the module that starts the thread.
import { existsSync } from "node:fs";
import { ControlError } from "../core/errors.ts";

/**
 * Returns the URL of the module `name` beside the module with the given `import.meta.url`. Throws in a bundle, where
 * there is only one file: the thread would end immediately, with an error that names neither Belay nor the bundle.
 */
export function workerFile(name: string, beside: string | undefined): URL {
  // In development the sources run directly; a build has only compiled modules.
  const file = `./${name}.${beside?.endsWith(".ts") === true ? "ts" : "js"}`;
  const url = beside?.startsWith("file:") === true ? new URL(file, beside) : undefined;
  if (url !== undefined && existsSync(url)) return url;
  throw new ControlError("invalid", "Belay was bundled, but the files of its worker threads were not.", {
    hint:
      "Leave agent-belay out of the bundle: `external` of esbuild, Rollup and Rolldown, `ssr.external` of Vite, " +
      "`externals` of webpack, `serverExternalPackages` of Next.js. It is a server-side package.",
  });
}
