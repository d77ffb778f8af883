// The public surface of `agent-belay/memory`, name by name: the reference store, in memory.
export { MemoryStore } from "./memory-store.ts";
