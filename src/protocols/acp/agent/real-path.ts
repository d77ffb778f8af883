// A directory by the name it is recorded under. A client may name it by a link, or with a slash at its end.
import { realpathSync } from "node:fs";

export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Not of this machine, or not there any more: then it is what it is called.
    return path.length > 1 ? path.replace(/\/+$/, "") : path;
  }
}
