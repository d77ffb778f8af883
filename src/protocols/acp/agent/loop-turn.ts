// Waits one turn of the event loop, in which everything that was ready proceeds as far as it can.
import { setImmediate } from "node:timers/promises";

export const loopTurn = (): Promise<void> => setImmediate();
