// Where the module of a thread is. Threads are started from files of their own, beside the modules that start them.
import { existsSync } from "node:fs";
import { ControlError } from "../core/errors.ts";

/**
 * The module `name` beside the one with the given `import.meta.url`. Refused in a bundle, where there is only one file:
 * a thread would end at once, for a reason that names neither Belay nor the bundle.
 */
export function workerFile(name: string, beside: string | undefined): URL {
  // Sources run as they are in development; a build has only the compiled modules.
  const file = `./${name}.${beside?.endsWith(".ts") === true ? "ts" : "js"}`;
  const url = beside?.startsWith("file:") === true ? new URL(file, beside) : undefined;
  if (url !== undefined && existsSync(url)) return url;
  throw new ControlError("invalid", "Belay was bundled, and the files that its threads are started from were not.", {
    hint:
      "Leave agent-belay out of the bundle: `external` of esbuild, Rollup and Rolldown, `ssr.external` of Vite, " +
      "`externals` of webpack, `serverExternalPackages` of Next.js. It is a package of the server.",
  });
}
