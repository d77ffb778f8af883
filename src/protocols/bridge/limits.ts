// Every bound of the bridge, each with its reason.

/** One line from the host: the largest prompt there is, and what JSON adds to it. */
export const LINE_BYTES_MAX = 2 * 1024 * 1024;

/** What was written and the host has not taken. With the line that comes on top of it, it stays below 1 MiB. */
export const HELD_BYTES_MAX = 512 * 1024;

/** Requests without an answer. Prompts wait for their outcome, so they are refused beyond it; a cancel never is. */
export const REQUESTS_OPEN_MAX = 1_024;

/** Lines that are being carried out, cancels included. Beyond it no line is read until one has been answered. */
export const LINES_OPEN_MAX = 2_048;

/** Sessions that are followed at once: each has one event in its hand. */
export const SUBSCRIPTIONS_MAX = 256;

/** What a run has said goes into one line; whoever wants more of it follows the session. */
export const TEXT_CHARS_MAX = 4 * 1024 * 1024;

/** One answer is one line, and whole in memory while it is written. There is one of that size at a time. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

/** How long the end may take after the host has gone: an orderly shutdown is bounded by 10 s, and comes first. */
export const HANGUP_MS = 12_000;

/** An id is for matching answers, not for carrying things. */
export const REQUEST_ID_CHARS_MAX = 256;
