// A disk with a file system that gives up: the kernel finds it at fault and lets nobody write to it any more, with all
// files still open. Needs the right to mount, and a file system that can be told to fail.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

export interface FrailDisk {
  readonly folder: string;
  /** From now on it can only be read. */
  abandon(): void;
  /** Taken out, repaired and put back. Nothing may be open. */
  repair(): void;
  remove(): void;
}

const MEGABYTES = 32;

export function frailDisk(): FrailDisk {
  const home = mkdtempSync(join(tmpdir(), "belay-frail-"));
  const [image, repaired, folder] = [join(home, "image"), join(home, "repaired"), mkdtempSync(join(home, "disk-"))];
  writeFileSync(image, "");
  truncateSync(image, MEGABYTES * 1024 * 1024);
  try {
    quietly("mkfs.ext4", "-q", "-F", image);
    mount(image, folder);
  } catch (error) {
    rmSync(home, { recursive: true, force: true });
    throw error;
  }
  return {
    folder,
    abandon: () => writeFileSync(failureOf(folder), "1"),
    repair: () => {
      quietly("umount", folder);
      // A copy: while a mount namespace of another program has a copy of this mount, mounting the same image again
      // would bring back the file system that can only be read.
      copyFileSync(image, repaired);
      repairs(repaired);
      mount(repaired, folder);
    },
    remove: () => {
      quietly("umount", "-l", folder);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Empty where there can be such a disk; else the reason, for the name of a test that is left out. */
export const SKIPPED: string = canFail() ? "" : " (skipped: no file system here can be told to fail)";

function canFail(): boolean {
  if (process.getuid?.() !== 0 || !existsSync("/dev/loop-control")) return false;
  try {
    const disk = frailDisk();
    try {
      return existsSync(failureOf(disk.folder));
    } finally {
      disk.remove();
    }
  } catch {
    // No right to mount, or no such file system.
    return false;
  }
}

function mount(image: string, folder: string): void {
  quietly("mount", "-t", "ext4", "-o", "loop,errors=remount-ro", image, folder);
}

function failureOf(folder: string): string {
  const device = execFileSync("findmnt", ["-no", "SOURCE", folder], { encoding: "utf8" }).trim();
  // Never a disk of the machine, whatever is mounted there.
  if (!/^\/dev\/loop\d+$/.test(device)) throw new Error(`${folder} is on ${device}.`);
  return join("/sys/fs/ext4", basename(device), "trigger_fs_error");
}

/** It says by its exit that it has found something to repair. */
function repairs(image: string): void {
  try {
    quietly("e2fsck", "-fy", image);
  } catch (error) {
    if ((error as { readonly status?: number }).status !== 1) throw error;
  }
}

function quietly(command: string, ...args: readonly string[]): void {
  execFileSync(command, [...args], { stdio: "ignore" });
}
