// The bounds of the SQLite store. Here and not in the core, because only this folder knows SQLite.

/** How long a write waits for another program that holds the database. In the writer's thread: nobody else waits. */
export const BUSY_MS = 2_000;

/** Appends that share one commit at most: bounds how long the first of them waits for the last. */
export const GROUP_BATCHES_MAX = 512;

/** Sessions whose head the writer remembers, about a hundred bytes each. The others are looked up. */
export const HEADS_MAX = 65_536; // @fault small-caches:heads

/** Memory for pages, in each of the two threads. */
export const CACHE_KIB = 16 * 1024; // @fault small-caches:pages

/** Pages of the write-ahead log before they are moved into the database. Fewer: more waiting for the disk. */
export const CHECKPOINT_PAGES = 1_000;

/** What is left of the write-ahead log on disk after a burst. */
export const WAL_BYTES_MAX = 64 * 1024 * 1024;

/** Files up to this size are checked in full when they are opened, which takes about 0.1 s; larger ones in part. */
export const FULL_CHECK_BYTES = 64 * 1024 * 1024;

/** Epochs are taken in blocks, one write for each: a claim needs none. */
export const EPOCH_BLOCK = 2 ** 20;

/** Disk space put aside, so that runs can still get their outcome when the disk is full. */
export const RESERVE_BYTES = 1024 * 1024; // @fault small-reserve

/** With less than this on the disk the store says that it is full: a prompt and the pages it touches may not fit. */
export const ROOM_BYTES_MIN = 256 * 1024;

/** How old the mark beside the file may become while commits go on. To move the log into the file takes far longer. */
export const MARK_EVERY_MS = 100;

/** Pages that one step gives back to the file system: about 2 ms of the writer. */
export const RECLAIM_PAGES = 256;

/** A file of an older version up to this size is rewritten once, within a second, so that it can shrink. */
export const REWRITE_BYTES_MAX = 64 * 1024 * 1024;
