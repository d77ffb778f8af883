// A process that has ended when it is looked at again: what no test could wait for, and every look must expect.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { onTestFinished } from "vitest";

const { openSync } = fs;

/** This one is seen once, and has ended when it is looked at again. */
export function endsBetweenLooks(pid: number): void {
  let looks = 0;
  const system = (instead: typeof openSync): void => {
    Object.assign(fs, { openSync: instead });
    syncBuiltinESMExports();
  };
  system((path, ...how) => {
    if (path === `/proc/${pid}/stat`) looks += 1;
    return openSync(path === `/proc/${pid}/stat` && looks > 1 ? "/proc/none" : path, ...how);
  });
  onTestFinished(() => system(openSync));
}
