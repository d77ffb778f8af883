// The version of the package, beside `src` and beside `dist` alike.
import { readFileSync } from "node:fs";
import { isObject } from "../core/input.ts";

export function version(): string {
  const about: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return isObject(about) && typeof about.version === "string" ? about.version : "unknown";
}
