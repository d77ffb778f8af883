// Serves a store that was named with --store, outside of a data directory: commands with the same --store find the
// program at a socket that is named after the file.
import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf } from "../../../core/errors.ts";
import { serveBelay } from "../../../http/serve.ts";
import type { BelayControl } from "../../../ports/control.ts";
import { socketOfStore } from "../../../sdk/data-dir.ts";

/** Creates the directory of the socket, so that `openRuntime()` hides it before the first command starts. */
export function socketDirectory(store: string): { readonly socket?: string } {
  if (store === ":memory:") return {};
  const socket = dirname(socketOfStore(store));
  mkdirSync(socket, { recursive: true, mode: 0o700 });
  return { socket };
}

/** Serves `belay` until the returned function is called. If no socket can be opened, it warns and serves nothing. */
export async function serveStore(
  belay: BelayControl,
  store: string,
  warn: (message: string) => void,
): Promise<() => Promise<void>> {
  if (store === ":memory:") return async () => {};
  const path = socketOfStore(store);
  try {
    // The file mode of the socket is the access control, so it takes no tokens.
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
