// What a process has open, as /proc names it: two that hold the same pipe have the same name for it.
import { readdirSync, readlinkSync } from "node:fs";

/** Undefined: it is not open, the process is gone, or it is not ours to look at. */
export function openFile(pid: number, fd: number | string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return undefined;
  }
}

/** Whether it has one of these open. Who cannot be looked at is taken for one who has not. */
export function hasOpen(pid: number, files: readonly string[]): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => files.includes(openFile(pid, fd) ?? ""));
  } catch {
    return false;
  }
}
