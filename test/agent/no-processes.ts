// Processes, for tests of tools that start none.
import { ControlError } from "../../src/core/control-error.ts";
import type { CallProcesses } from "../../src/spawner.ts";

const none = (): Promise<never> => Promise.reject(new ControlError("uncontained", "There are no processes here."));

export const noProcesses: CallProcesses = { run: none, start: none, get: none, list: () => Promise.resolve([]) };
