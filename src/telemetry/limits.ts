// The limits of log, audit trail, metrics and traces, each with its reason.

/** A shorter secret would match ordinary texts by chance. */
export const SECRET_CHARS_MIN = 8;

/** The longest private keys in use are a few KiB. A longer text is a document, not a secret. */
export const SECRET_CHARS_MAX = 16 * 1024;

/** Each secret is searched for in a dozen forms, in everything that is logged. */
export const SECRETS_MAX = 256;

/** One text of a log line or a preview. It is redacted before it is truncated: half a secret is still a secret. */
export const TEXT_CHARS_MAX = 8 * 1024;

/** Only the length of a longer text is shown: truncating it safely would mean redacting all of it. */
export const TEXT_CHARS_READ_MAX = 1024 * 1024;

/** Values inside one preview or log line. Legitimate data has fewer. */
export const PREVIEW_VALUES_MAX = 1_000;

/** Nesting of a preview. Deeper values are not readable for people. */
export const PREVIEW_DEPTH_MAX = 16;

/** One log line. Log shippers truncate at 16 to 64 KiB, and a truncated line is not valid JSON. */
export const LINE_CHARS_MAX = 16 * 1024;

/** Depth of the causes of an error that are logged. */
export const CAUSES_MAX = 5;

/** Buffered log lines when the reader of the log is slow (backpressure). Beyond it lines are dropped and counted. */
export const SINK_BYTES_MAX = 1024 * 1024;

/** One file of the audit trail. All kept files together hold some 400,000 requests, in a predictable size. */
export const AUDIT_FILE_BYTES_MAX = 16 * 1024 * 1024;

/** Kept files of the audit trail, including the current one. */
export const AUDIT_FILES_KEPT = 8;

/** Buffered audit records. Beyond it records are counted as missed, so that a full disk does not fill the memory. */
export const AUDIT_WAITING_BYTES_MAX = 4 * 1024 * 1024;

/** How long a request waits for its audit record. A hanging disk must not delay a stop. */
export const AUDIT_WAIT_MS_MAX = 1_000;

/** One audit record as a line, escapes included. A longer line was not written by Belay and is skipped. */
export const AUDIT_LINE_BYTES_MAX = 64 * 1024;

/** Block size for reading an audit file backwards from its end. */
export const AUDIT_BLOCK_BYTES = 64 * 1024;

/** Bytes that are searched for one page. The search continues with the next page. */
export const AUDIT_SCAN_BYTES_MAX = 8 * 1024 * 1024;

/** Records in one page. */
export const AUDIT_PAGE_MAX = 1_000;

/** Records kept by an audit trail in memory. */
export const AUDIT_MEMORY_MAX = 10_000;

/** Actor, action and target of an audit record are names. */
export const AUDIT_NAME_CHARS_MAX = 256;

/** The note of an audit record. The session's log has the full note. */
export const AUDIT_NOTE_CHARS_MAX = 1_024;

/** Series of one metric. Beyond it all others become one: a scrape must not grow with what users do. */
export const SERIES_MAX = 100;

/** The value of a label is a word. */
export const LABEL_CHARS_MAX = 128;

/** Unsettled runs whose times are kept. Beyond it the oldest run is not measured. */
export const RUNS_MEASURED_MAX = 16_384;

/** Runs with an open span. Beyond it the span of the oldest run is ended. */
export const SPANS_RUNS_MAX = 4_096;

/** Open spans inside one run: as many calls as can be live, and a turn. */
export const SPANS_PER_RUN_MAX = 300;

/** Kept owners of processes, by which the span of a process is found. */
export const SPAN_NAMES_MAX = 16_384;

/** A name in a span. Trace viewers show it in a column. */
export const SPAN_NAME_CHARS_MAX = 80;
