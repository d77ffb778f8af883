// The options with which another command finds the same Belay, so that a line we print works when it is pasted.
import { resolve } from "node:path";
import { shellQuoted } from "../commands/serve/serve-greeting.ts";
import type { ConnectionOptions } from "./connection-options.ts";

/** As they were typed, with whole paths and a space before each. Empty: nothing is needed. */
export function connectionArguments({ url, socket, store, tokenFile, home }: ConnectionOptions): string {
  const given: readonly (readonly [string, string | undefined])[] = [
    ["--url", url],
    ["--socket", whole(socket)],
    ["--store", store === ":memory:" ? undefined : whole(store)],
    ["--token-file", whole(tokenFile)],
    ["--home", whole(home)],
  ];
  return given.map(([name, value]) => (value === undefined ? "" : ` ${name} ${shellQuoted(value)}`)).join("");
}

const whole = (path: string | undefined): string | undefined => (path === undefined ? undefined : resolve(path));
