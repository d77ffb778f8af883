// Lets the event loop turn once. Whatever was ready to go on has gone on by then, as far as it could.
import { setImmediate } from "node:timers/promises";

export const loopTurn = (): Promise<void> => setImmediate();
