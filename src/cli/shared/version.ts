// Which Belay this is.
import { readFileSync } from "node:fs";

/** Beside `src` and beside `dist` alike. */
export function version(): string {
  const text = readFileSync(new URL("../../../package.json", import.meta.url), "utf8");
  const about: unknown = JSON.parse(text);
  return typeof about === "object" && about !== null && "version" in about ? String(about.version) : "unknown";
}
