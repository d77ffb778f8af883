// The public surface of `agent-belay/memory`: the reference store, in memory.
export { MemoryStore } from "./memory-store.ts";
