// Limits of the file tools and of attachments, each with its reason.

/** Bytes of one file in one result: about sixteen thousand tokens. The model can read the rest by line numbers. */
export const FILE_RESULT_BYTES = 64 * 1024;

/** Less than this does not show a whole function. */
export const FILE_RESULT_BYTES_MIN = 1_024;

/** Bytes of one file in one result at most: a result is logged and sent again with every request that follows. */
export const FILE_RESULT_BYTES_MAX = 256 * 1024;

/** Lines of one file in one result. */
export const FILE_RESULT_LINES_MAX = 2_000;

/** Characters of one line. A longer line was generated, and its end tells a reader nothing. */
export const FILE_LINE_CHARS = 2_000;

/** How far a file is scanned to find or count lines. Takes a second on a slow disk. */
export const FILE_SCAN_BYTES_MAX = 64 * 1024 * 1024;

/** A file that is edited is in memory three times: as bytes, as old text and as new text. */
export const FILE_EDIT_BYTES_MAX = 4 * 1024 * 1024;

/** Bytes per read. A stop takes effect between two reads. */
export const FILE_BLOCK_BYTES = 64 * 1024;

/** How far a file is searched for a zero byte: nearly every binary file has one by then. */
export const FILE_SNIFF_BYTES = 8 * 1024;

/** Names in one result of a listing. More are less useful than a narrower pattern. */
export const LIST_RESULT_ENTRIES_MAX = 500;

/** Names that one listing or search visits. A larger tree must be searched in parts. */
export const WALK_ENTRIES_MAX = 50_000;

/** Nesting of directories. Deeper trees exist by mistake or to do harm. */
export const WALK_DEPTH_MAX = 32;

/** A larger file is data, not source. It is skipped, and the result says how many were skipped. */
export const SEARCH_FILE_BYTES_MAX = 2 * 1024 * 1024;

/** Files that are read in parallel: keeps the disk busy and little in memory. */
export const SEARCH_FILES_AT_ONCE = 8;

/** Lines in one result of a search. */
export const SEARCH_RESULT_LINES_MAX = 200;

/** Characters of each of these lines: enough to recognise it. */
export const SEARCH_LINE_CHARS = 300;

/** Time limit of a search. A pattern that needs longer is matching exponentially. */
export const SEARCH_MS = 15_000;

/** Characters of a search query. */
export const SEARCH_CHARS_MAX = 1_000;

/** Characters of a path: the limit of the operating system. */
export const PATH_CHARS_MAX = 4_096;

/** Names that are compared to suggest the intended one. */
export const SUGGESTED_FROM_MAX = 1_000;

/** Characters of a glob pattern, and how many patterns its braces may expand to. */
export const GLOB_CHARS_MAX = 256;
export const GLOB_BRANCHES_MAX = 64;

/** Files whose version is remembered to detect changes by others. The least recently used one is forgotten. */
export const SEEN_FILES_MAX = 4_096;

/** Names that are tried for a temporary file; a crash may have left some behind. */
export const TEMPORARY_NAMES_MAX = 8;

/** Attachments of one prompt. More files belong in the workspace, where the agent can read them. */
export const ATTACHMENTS_MAX = 16;

/** Bytes of one attachment. As base64 it grows by a third, and must fit into a prompt with its text. */
export const ATTACHMENT_BYTES_MAX = 720 * 1024;

/** Characters of an attachment's name, which only has to tell files apart. */
export const ATTACHMENT_NAME_CHARS_MAX = 255;
