// The bounds of what is told about the work: log, audit trail, metrics, traces. Each with its reason.

/** A shorter text is found by chance in texts that are not secret, and would make holes everywhere. */
export const SECRET_CHARS_MIN = 8;

/** The longest private keys people use are a few KiB. What is longer is a document, and is not logged as one. */
export const SECRET_CHARS_MAX = 16 * 1024;

/** Each secret is looked for in a dozen forms, in everything that is logged. */
export const SECRETS_MAX = 256;

/** One text of a log line or a preview. It is redacted before it is cut: half a secret is still a secret. */
export const TEXT_CHARS_MAX = 8 * 1024;

/** A text longer than this is named by its length only: it would have to be redacted whole to be cut safely. */
export const TEXT_CHARS_READ_MAX = 1024 * 1024;

/** Values inside one preview or log line. Nobody reads more, and whoever sends more does so on purpose. */
export const PREVIEW_VALUES_MAX = 1_000;

/** Nesting of a preview. Deeper is for machines. */
export const PREVIEW_DEPTH_MAX = 16;

/** One log line. Log shippers cut at 16 to 64 KiB, and a line that was cut by them is not JSON any more. */
export const LINE_CHARS_MAX = 16 * 1024;

/** Causes of causes of an error that are told. */
export const CAUSES_MAX = 5;

/** Lines that wait for a reader of the log who does not read. Beyond it they are dropped and counted. */
export const SINK_BYTES_MAX = 1024 * 1024;

/** One file of the audit trail. With those that are kept: some 400,000 requests, and a size that can be planned for. */
export const AUDIT_FILE_BYTES_MAX = 16 * 1024 * 1024;

/** Files of the audit trail that are kept, the one that is written included. */
export const AUDIT_FILES_KEPT = 8;

/** Records that wait for the disk. Beyond it they are counted as missed: memory is not what a full disk may fill. */
export const AUDIT_WAITING_BYTES_MAX = 4 * 1024 * 1024;

/** How long a request waits for its record. A disk that hangs must not hold up a stop. */
export const AUDIT_WAIT_MS_MAX = 1_000;

/** One record as a line, escapes included. A longer line in a file is not ours, and is skipped. */
export const AUDIT_LINE_BYTES_MAX = 64 * 1024;

/** Read at once, from the end of a file backwards. */
export const AUDIT_BLOCK_BYTES = 64 * 1024;

/** Looked through for one page. What is searched further is another page. */
export const AUDIT_SCAN_BYTES_MAX = 8 * 1024 * 1024;

/** Records of one page. */
export const AUDIT_PAGE_MAX = 1_000;

/** Records kept by a trail without a file. */
export const AUDIT_MEMORY_MAX = 10_000;

/** Who, what and where of a record are names. */
export const AUDIT_NAME_CHARS_MAX = 256;

/** A person's words in a record; the whole of them is in the session's log. */
export const AUDIT_NOTE_CHARS_MAX = 1_024;

/** Different label values of one metric. Beyond it all others are one: a scrape must not grow with what users do. */
export const SERIES_MAX = 100;

/** A label's value is a word. */
export const LABEL_CHARS_MAX = 128;

/** Runs whose times are remembered until they have ended. Of more than these, the oldest is not measured. */
export const RUNS_MEASURED_MAX = 16_384;

/** Runs with an open span. Of more than these, the oldest is closed. */
export const SPANS_RUNS_MAX = 4_096;

/** Open spans inside one run: as many calls as can be live, and a turn. */
export const SPANS_PER_RUN_MAX = 300;

/** Titles and processes that spans are named after or found by. */
export const SPAN_NAMES_MAX = 16_384;

/** A name in a span. It is shown in a column. */
export const SPAN_NAME_CHARS_MAX = 80;
