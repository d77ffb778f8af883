// What is asked of the server from inside of it, and what it answers: its memory.

/** An environment variable of the server: the file with the edited modules that it loads, as JSON. Empty: none. */
export const MODULES_VARIABLE = "SOAK_MODULES";

/** `snapshot`: everything on the heap, written to this file. */
export type Ask = { readonly type: "memory" } | { readonly type: "snapshot"; readonly file: string };

export interface Memory {
  /** Objects on the heap, after a full collection; without compiled code, which grows for a while whatever is held. */
  readonly heapBytes: number;
  /** Buffers, which are not on the heap. */
  readonly externalBytes: number;
  /** What keeps the loop alive, by kind: timers, sockets, pipes, processes. */
  readonly resources: Readonly<Record<string, number>>;
}
