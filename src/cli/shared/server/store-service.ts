// A program that works on a store that was named, outside of a data directory: commands with the same --store find it
// at a socket that is named after the file.
import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf } from "../../../core/errors.ts";
import { serveBelay } from "../../../http/serve.ts";
import type { BelayControl } from "../../../ports/control.ts";
import { socketOfStore } from "../../../sdk/data-dir.ts";

/** The directory of the socket, for `openRuntime()`: it is there, and hidden, before the first command starts. */
export function socketDirectory(store: string): { readonly socket?: string } {
  if (store === ":memory:") return {};
  const socket = dirname(socketOfStore(store));
  mkdirSync(socket, { recursive: true, mode: 0o700 });
  return { socket };
}

/** Serves `belay` until the returned function is called. Where there can be no socket, it warns and serves nothing. */
export async function serveStore(
  belay: BelayControl,
  store: string,
  warn: (message: string) => void,
): Promise<() => Promise<void>> {
  if (store === ":memory:") return async () => {};
  const path = socketOfStore(store);
  try {
    // Who may open the socket may ask: it takes no tokens.
    const serving = await serveBelay(belay, { tokens: () => undefined, at: { kind: "socket", path } });
    return async () => {
      await serving.close();
      await rm(dirname(path), { recursive: true, force: true });
    };
  } catch (error) {
    warn(`other commands cannot reach this program: ${messageOf(error)}`);
    return async () => {};
  }
}
