// The limits of the SQLite store. They are here, not in the core, because only this folder knows SQLite.

/** How long a write waits for another program's lock on the database. Only the writer's thread waits. */
export const BUSY_MS = 2_000;

/** Largest number of appends in one commit: bounds how long the first of them waits for the last. */
export const GROUP_BATCHES_MAX = 512;

/** Sessions whose heads the writer caches, about a hundred bytes each. Others are looked up. */
export const HEADS_MAX = 65_536; // @fault small-caches:heads

/** Page cache, in each of the two threads. */
export const CACHE_KIB = 16 * 1024; // @fault small-caches:pages

/** Pages of the write-ahead log before a checkpoint. Fewer pages mean more waiting for the disk. */
export const CHECKPOINT_PAGES = 1_000;

/** Largest size of the write-ahead log on disk after a burst. */
export const WAL_BYTES_MAX = 64 * 1024 * 1024;

/** Files up to this size are checked completely when they are opened, which takes about 0.1 s; larger ones partly. */
export const FULL_CHECK_BYTES = 64 * 1024 * 1024;

/** Epochs are reserved in blocks, one write per block: a claim writes nothing. */
export const EPOCH_BLOCK = 2 ** 20;

/** Reserved disk space, so that runs can still record their outcome when the disk is full. */
export const RESERVE_BYTES = 1024 * 1024; // @fault small-reserve

/** With less free space than this, the store reports that it is full: a prompt and its pages may not fit. */
export const ROOM_BYTES_MIN = 256 * 1024;

/** How outdated the mark beside the file may become while commits continue. A checkpoint takes far longer. */
export const MARK_EVERY_MS = 100;

/** Pages that one step returns to the file system: about 2 ms of the writer. */
export const RECLAIM_PAGES = 256;

/** A file of an older version up to this size is rewritten once, within a second, so that it can shrink. */
export const REWRITE_BYTES_MAX = 64 * 1024 * 1024;
