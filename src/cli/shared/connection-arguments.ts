// The options with which another command finds the same Belay, so that a line we print works when it is pasted.
import { resolve } from "node:path";
import { shellQuoted } from "../commands/serve/serve-greeting.ts";
import type { ConnectionOptions } from "./connection-options.ts";

/** The options as they were typed, with absolute paths and a space before each. Empty: none is needed. */
export function connectionArguments({ url, socket, store, tokenFile, home }: ConnectionOptions): string {
  const given: readonly (readonly [string, string | undefined])[] = [
    ["--url", url],
    ["--socket", absolute(socket)],
    ["--store", store === ":memory:" ? undefined : absolute(store)],
    ["--token-file", absolute(tokenFile)],
    ["--home", absolute(home)],
  ];
  return given.map(([name, value]) => (value === undefined ? "" : ` ${name} ${shellQuoted(value)}`)).join("");
}

const absolute = (path: string | undefined): string | undefined => (path === undefined ? undefined : resolve(path));
