// Opens a store and says how long that took. A process of its own, as a server that starts.
import { openBelay } from "../../src/sdk/belay.ts";

const began = performance.now();
const belay = await openBelay({ store: process.argv[2] ?? "", agent: () => "done" });
console.log(performance.now() - began);
await belay.close();
