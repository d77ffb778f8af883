// One tree for all contestants, and an instrument that shares nothing with any of them: every process of the tree holds
// the writing end of a named pipe, so its end is read exactly when the last of them is gone.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { Worker } from "node:worker_threads";

export interface Tree {
  /** A shell and five children that sleep. */
  readonly command: string;
  /** Resolves when all of them are there. */
  readonly up: Promise<void>;
  /** Resolves with the time at which the last of them was gone, on the clock of `now`. */
  readonly gone: Promise<number>;
}

/** The machine's own clock, the same in every thread. */
export const now = (): number => Number(process.hrtime.bigint()) / 1e6;

interface Seen {
  readonly type: "up" | "gone";
  readonly fifo: string;
  readonly at: number;
}

const eye = new Worker(new URL("./tree-watch.ts", import.meta.url));
eye.unref();

/** `deaf`: each of them ignores every polite signal. One at a time. */
export function plant(dir: string, name: string, kind: "plain" | "deaf"): Tree {
  const fifo = join(dir, name);
  execFileSync("mkfifo", [fifo]);
  eye.ref();
  const up = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<number>();
  eye.on("message", function hear(seen: Seen) {
    if (seen.fifo !== fifo) return;
    if (seen.type === "up") return up.resolve();
    eye.off("message", hear);
    eye.unref();
    gone.resolve(seen.at);
  });
  eye.postMessage({ fifo, members: MEMBERS });
  const ignore = kind === "deaf" ? `trap "" TERM INT HUP; ` : "";
  const sleeper = `sh -c '${ignore}printf x >&9; exec sleep 1000'`;
  const command = [
    `exec 9>'${fifo}'`,
    ...Array.from({ length: MEMBERS - 1 }, () => `${sleeper} &`),
    `${ignore.replaceAll('"', "'")}`,
    "printf x >&9",
    "wait",
  ].join("\n");
  return { command, up: up.promise, gone: gone.promise };
}

const MEMBERS = 6;
