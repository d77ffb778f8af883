// Every bound of the tools for files and of attachments, each with its reason.

/** Of one file, in one result: some sixteen thousand tokens. The rest can be asked for by its lines. */
export const FILE_BYTES_TOLD = 64 * 1024;

/** Less would not show a function. */
export const FILE_BYTES_TOLD_MIN = 1_024;

/** What a result may tell of a file at the very most: it goes into the log, and into every request that follows. */
export const FILE_BYTES_TOLD_MAX = 256 * 1024;

/** Lines of one file in one result. */
export const FILE_LINES_TOLD = 2_000;

/** Of one line. A longer one was written by a program, and nobody reads it to its end. */
export const FILE_LINE_CHARS = 2_000;

/** How far a file is read to find a line, or to count them. Takes a second on a slow disk. */
export const FILE_SCAN_BYTES_MAX = 64 * 1024 * 1024;

/** A file that is edited is held in memory three times: as bytes, as it was, as it will be. */
export const FILE_EDIT_BYTES_MAX = 4 * 1024 * 1024;

/** Read at a time. Between two of them a stop is heard. */
export const FILE_BLOCK_BYTES = 64 * 1024;

/** Where a zero byte is looked for: what is no text has one by then. */
export const FILE_SNIFF_BYTES = 8 * 1024;

/** Names in one result of a listing. More of them say less than a narrower pattern. */
export const LIST_ENTRIES_TOLD = 500;

/** Names that one listing or search looks at. A larger tree is asked about in parts. */
export const WALK_ENTRIES_MAX = 50_000;

/** Directories within directories. Deeper trees are made by mistake, or to harm. */
export const WALK_DEPTH_MAX = 32;

/** A larger file is data, not source. It is skipped, and the result says how many were. */
export const SEARCH_FILE_BYTES_MAX = 2 * 1024 * 1024;

/** Files that are read at once: the disk is kept busy, and little is in memory. */
export const SEARCH_FILES_AT_ONCE = 8;

/** Lines that one search tells. */
export const SEARCH_LINES_TOLD = 200;

/** Of each of them: enough to know it again. */
export const SEARCH_LINE_CHARS = 300;

/** How long a search may take. A pattern that needs more goes round in circles. */
export const SEARCH_MS = 15_000;

export const SEARCH_CHARS_MAX = 1_000;

/** A path as the operating system takes it, and no longer. */
export const PATH_CHARS_MAX = 4_096;

/** Names among which one is looked for that may have been meant. */
export const SUGGESTED_FROM_MAX = 1_000;

/** A pattern for names, and how many it may stand for by its braces. */
export const GLOB_CHARS_MAX = 256;
export const GLOB_BRANCHES_MAX = 64;

/** Files whose state is remembered, so that nobody writes over what they have not seen. The oldest is forgotten. */
export const SEEN_FILES_MAX = 4_096;

/** Names that are tried for a file that is written before it takes its place; a crash may have left some. */
export const TEMPORARY_NAMES_MAX = 8;

/** Files with one prompt. More belong into the workspace, where the agent can read them. */
export const ATTACHMENTS_MAX = 16;

/** One of them. As base64 it is a third more, and must fit into a prompt with its text. */
export const ATTACHMENT_BYTES_MAX = 720 * 1024;

/** A name is for people and models to tell files apart. */
export const ATTACHMENT_NAME_CHARS_MAX = 255;
