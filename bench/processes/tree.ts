// One tree for all contestants, and an instrument that shares nothing with any of them: every process of the tree holds
// the writing end of a named pipe, so its end is read exactly when the last of them is gone.
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";

export interface Tree {
  /** A shell and five children that sleep. */
  readonly command: string;
  /** Resolves when all of them are there. */
  readonly up: Promise<void>;
  /** Resolves with the time at which the last of them was gone. */
  readonly gone: Promise<number>;
}

/** `deaf`: each of them ignores every polite signal. */
export function plant(dir: string, name: string, kind: "plain" | "deaf"): Tree {
  const fifo = join(dir, name);
  execFileSync("mkfifo", [fifo]);
  const fd = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
  // A writer of our own, so that the pipe has not ended before the tree begins; given up once the tree is there.
  const writer = openSync(fifo, constants.O_WRONLY);
  const pipe = new Socket({ fd, readable: true, writable: false });
  let members = 0;
  let tell = { up: (): void => {}, gone: (_: number): void => {} };
  const up = new Promise<void>((resolve) => {
    tell = { ...tell, up: resolve };
  });
  const gone = new Promise<number>((resolve) => {
    tell = { ...tell, gone: resolve };
  });
  pipe.on("data", (bytes: Buffer) => {
    members += bytes.length;
    if (members < MEMBERS) return;
    closeSync(writer);
    tell.up();
  });
  pipe.on("close", () => tell.gone(performance.now()));
  pipe.on("end", () => pipe.destroy());
  const ignore = kind === "deaf" ? `trap "" TERM INT HUP; ` : "";
  const sleeper = `sh -c '${ignore}printf x >&9; exec sleep 1000'`;
  const command = [
    `exec 9>'${fifo}'`,
    ...Array.from({ length: MEMBERS - 1 }, () => `${sleeper} &`),
    `${ignore.replaceAll('"', "'")}`,
    "printf x >&9",
    "wait",
  ].join("\n");
  return { command, up, gone };
}

const MEMBERS = 6;
