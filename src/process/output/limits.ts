// The bounds of output, each with its reason.

/** What is kept on disk of one stream, unless the caller says otherwise. `all` is a stream of its own. */
export const OUTPUT_BYTES_DEFAULT = 64 * 1024 * 1024;

/** The beginning of a stream that stays in memory: where a program says what it is about to do. */
export const HEAD_BYTES = 32 * 1024;

/** The end of a stream that stays in memory: where a program says how it went. */
export const TAIL_BYTES = 32 * 1024;

/** Bytes of one file that may wait for the disk before whoever reads the pipe is asked to pause. */
export const WAITING_BYTES_PAUSE = 1024 * 1024;

/** Below this it may go on: late enough not to flutter, early enough that the disk never idles. */
export const WAITING_BYTES_RESUME = 256 * 1024;

/**
 * What may wait at the very most. A reader that pauses when it is asked to is at most one read per pipe late, which is
 * far less than this leaves; for one that does not pause the file ends here, and not the memory.
 */
export const WAITING_BYTES_MAX = 2 * 1024 * 1024;

/** Waiting bytes are gathered in blocks of this size at most: as much as one read from a pipe gives. */
export const BLOCK_BYTES_MAX = 64 * 1024;

/** And at least this: a program that writes byte by byte must not cost an object per byte. */
export const BLOCK_BYTES_MIN = 4 * 1024;

/** How long the end waits for the disk. A disk that hangs must not keep a call from ending. */
export const FLUSH_MS_MAX = 2_000;

/** The longest character of UTF-8, so the smallest page that surely gets on. */
export const CHARACTER_BYTES_MAX = 4;

/** One page, unless the reader asks for another size. */
export const PAGE_BYTES_DEFAULT = 64 * 1024;

/** The largest page: it is one string in memory, and often one message to somebody else. */
export const PAGE_BYTES_MAX = 1024 * 1024;

/** An excerpt, unless asked otherwise: some four thousand tokens of a model. */
export const EXCERPT_BYTES_DEFAULT = 16 * 1024;

/** What is read of a counts file: what we write is a third of it at most. */
export const COUNTS_BYTES_MAX = 1024 * 1024;
