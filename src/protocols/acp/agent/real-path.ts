// Resolves a directory to the path under which it is recorded. A client may name it by a link, or with a trailing
// slash.
import { realpathSync } from "node:fs";

export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // On another machine, or missing: then the path itself.
    return path.length > 1 ? path.replace(/\/+$/, "") : path;
  }
}
