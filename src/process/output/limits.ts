// The limits of output, each with its reason.

/** The default of bytes kept on disk for one stream. `all` counts as a stream. */
export const OUTPUT_BYTES_DEFAULT = 64 * 1024 * 1024;

/** The beginning of a stream that stays in memory: where programs announce what they do. */
export const HEAD_BYTES = 32 * 1024;

/** The end of a stream that stays in memory: where programs print their result. */
export const TAIL_BYTES = 32 * 1024;

/** Bytes of one file queued for the disk before the reader of the pipe must pause. */
export const WAITING_BYTES_PAUSE = 1024 * 1024;

/** Reading resumes below this: low enough to avoid flapping, high enough that the disk never idles. */
export const WAITING_BYTES_RESUME = 256 * 1024;

/**
 * The maximum queued for the disk. A reader that pauses when required is at most one read per pipe late, which is far
 * less than this leaves; if it does not pause, the file ends here, so that memory stays bounded.
 */
export const WAITING_BYTES_MAX = 2 * 1024 * 1024;

/** The maximum size of a queued block: as much as one read from a pipe returns. */
export const BLOCK_BYTES_MAX = 64 * 1024;

/** The minimum size: a program that writes byte by byte must not cost an object per byte. */
export const BLOCK_BYTES_MIN = 4 * 1024;

/** How long the end waits for the disk. A disk that hangs must not keep a call from ending. */
export const FLUSH_MS_MAX = 2_000;

/** The longest UTF-8 character, so the smallest page that always advances. */
export const CHARACTER_BYTES_MAX = 4;

/** The default size of a page. */
export const PAGE_BYTES_DEFAULT = 64 * 1024;

/** The largest page: it is one string in memory, and often one network message. */
export const PAGE_BYTES_MAX = 1024 * 1024;

/** The default size of an excerpt: about four thousand tokens of a model. */
export const EXCERPT_BYTES_DEFAULT = 16 * 1024;

/** How much of a counts file is read: Belay writes at most a third of it. */
export const COUNTS_BYTES_MAX = 1024 * 1024;
