// Our own side with a store that forgets: everything but durability, next to peers that have none.
import { openOurs } from "./our-side.ts";
import type { Side } from "./side.ts";

export const open = (): Promise<Side> => openOurs("oursInMemory", () => ":memory:");
