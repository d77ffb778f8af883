// A disk of its own, small enough to be filled up. Needs the right to mount: who has it not is told before.
import { execFileSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, statSync, truncateSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallDisk {
  readonly folder: string;
  /** Leaves no room for anything. */
  fill(): void;
  /** Leaves room for so many bytes, as the disk counts: in blocks. */
  leave(bytes: number): void;
  /** Takes away what `fill` has put there. */
  makeRoom(): void;
  remove(): void;
}

const MEGABYTES = 16;
const PIECE = Buffer.alloc(4_096, 1);

export function smallDisk(megabytes = MEGABYTES): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), "belay-disk-"));
  mount(folder, megabytes);
  const filler = join(folder, "filler");
  const fill = (): void => {
    const file = openSync(filler, "a");
    try {
      for (;;) writeSync(file, PIECE);
    } catch (error) {
      if (!String(error).includes("ENOSPC")) throw error;
    } finally {
      closeSync(file);
    }
  };
  return {
    folder,
    fill,
    leave: (bytes) => {
      fill();
      truncateSync(filler, statSync(filler).size - bytes);
    },
    makeRoom: () => rmSync(filler, { force: true }),
    remove: () => {
      execFileSync("umount", ["-l", folder]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Empty where a disk can be mounted; else the reason, for the name of a test that is left out. */
export const SKIPPED: string = canMount() ? "" : " (skipped: may not mount)";

function canMount(): boolean {
  const probe = mkdtempSync(join(tmpdir(), "belay-mount-"));
  try {
    mount(probe, 1);
    execFileSync("umount", [probe], { stdio: "ignore" });
    return true;
  } catch {
    // No right to, or no such file system.
    return false;
  } finally {
    rmSync(probe, { recursive: true, force: true });
  }
}

function mount(folder: string, megabytes: number): void {
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", folder], { stdio: "ignore" });
}
