// Reserved disk space. When the disk is full it is released, so that live runs can be recorded to their end; new ones
// are refused until the space is reserved again.
import { rmSync, statSync, writeFileSync } from "node:fs";
import { isTight } from "./file-system.ts";

/** `spent`: released, because the disk was full. `none`: reserving is not possible here, so nothing depends on it. */
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

  /** Whether there is space for something new. Tries to reserve the space again if it was released. */
  hasRoom(): boolean {
    if (this.#phase === "spent") this.#phase = this.#take();
    return this.#phase !== "spent";
  }

  /** Whether the disk has so little free space that something new may not fit. */
  isTight(): boolean {
    return isTight(this.#path);
  }

  /** Releases the space. False: there is none to release. */
  spend(): boolean {
    if (this.#phase !== "held" || !this.#remove()) return false;
    this.#phase = "spent";
    return true;
  }

  #take(): Phase {
    try {
      if (statSync(this.#path, { throwIfNoEntry: false })?.size === this.#bytes) return "held";
      // Not zeros: some file systems store those without using space.
      writeFileSync(this.#path, Buffer.alloc(this.#bytes, 0xb1));
      return "held";
    } catch (error) {
      this.#remove();
      return isFull(error) ? "spent" : "none";
    }
  }

  /** False: the file could not be removed. */
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
