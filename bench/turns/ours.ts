// Our own side: a real store with full durability, the model loop, and a follower that reads the deltas as they come.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openOurs } from "./our-side.ts";
import type { Side } from "./side.ts";

export async function open(): Promise<Side> {
  const folder = await mkdtemp(join(tmpdir(), "belay-turns-"));
  const side = await openOurs("ours", (kind) => join(folder, `${kind}.db`));
  return {
    ...side,
    close: async () => {
      await side.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
