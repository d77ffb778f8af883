// Disk space put aside. When the disk is full it is given back, so that runs that are under way can be recorded to
// their end; new ones are refused until it could be put aside again.
import { rmSync, statSync, writeFileSync } from "node:fs";
import { isTight } from "./file-system.ts";

/** `spent`: given back, the disk was full. `none`: cannot be had here at all, so nothing depends on it. */
type Phase = "held" | "spent" | "none";

export class Reserve {
  readonly #path: string;
  readonly #bytes: number;
  #phase: Phase;

  constructor(path: string, bytes: number) {
    this.#path = path;
    this.#bytes = bytes;
    this.#phase = this.#take();
  }

  /** Whether there is room for something new. Tries to put the space aside again if it was given back. */
  hasRoom(): boolean {
    if (this.#phase === "spent") this.#phase = this.#take();
    return this.#phase !== "spent";
  }

  /** Whether the disk has so little left that something new may not fit. */
  isTight(): boolean {
    return isTight(this.#path);
  }

  /** Gives the space back. False: there is none to give. */
  spend(): boolean {
    if (this.#phase !== "held" || !this.#remove()) return false;
    this.#phase = "spent";
    return true;
  }

  #take(): Phase {
    try {
      if (statSync(this.#path, { throwIfNoEntry: false })?.size === this.#bytes) return "held";
      // Not zeros: some file systems store those as nothing.
      writeFileSync(this.#path, Buffer.alloc(this.#bytes, 0xb1));
      return "held";
    } catch (error) {
      this.#remove();
      return isFull(error) ? "spent" : "none";
    }
  }

  /** False: the disk does not even let go of it. */
  #remove(): boolean {
    // @fault reserve-throws
    try {
      rmSync(this.#path, { force: true });
      return true;
    } catch {
      return false;
    }
  }
}

const isFull = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");
