// Limits of the bridge, each with its reason.

/** One line from the host: the largest possible prompt with its JSON overhead. */
export const LINE_BYTES_MAX = 2 * 1024 * 1024;

/** Bytes written that the host has not read. With one line on top it stays below 1 MiB. */
export const HELD_BYTES_MAX = 512 * 1024;

/** Requests without an answer. Prompts wait for their outcome, so beyond this they are refused; a cancel never is. */
export const REQUESTS_OPEN_MAX = 1_024;

/** Lines that are being handled, cancels included. Beyond this no line is read until one has been answered. */
export const LINES_OPEN_MAX = 2_048;

/** Subscriptions at the same time: each holds one event. */
export const SUBSCRIPTIONS_MAX = 256;

/** The text of a run in one answer; a host that needs more subscribes to the session. */
export const TEXT_CHARS_MAX = 4 * 1024 * 1024;

/** One answer is one line, which is in memory as a whole while it is written. At most one is that large at a time. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** Time limit for the end after the host is gone: a graceful shutdown, bounded by 10 s, comes first. */
export const HANGUP_MS = 12_000;

/** Length of a request id, which only matches answers to requests. */
export const REQUEST_ID_CHARS_MAX = 256;
