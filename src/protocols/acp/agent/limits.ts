// Every bound of the door, each with its reason.

/** Sessions one connection has open: each is followed, and has a page of events in its hand. */
export const SESSIONS_MAX = 256;

/** Prompts of one connection that wait for their answers. They are refused beyond it; a stop never is. */
export const PROMPTS_OPEN_MAX = 1_024;

/** Updates that may be on their way before the next one is made: enough to keep a pipe busy, little to hold. */
export const UPDATES_HELD_MAX = 32;

/** How long the answer to a close waits for the processes of the session to end. */
export const CLOSE_WAIT_MS = 5_000;

/** Sessions on one page of a list. */
export const LIST_PAGE = 50;

/** What was asked first in sessions without a title is kept of so many: some twenty pages of a list. */
export const FIRST_PROMPTS_MAX = 1_000;

/** Sessions looked at for one page, if few of them belong on it. The page then ends early, with a cursor. */
export const LIST_SCAN_MAX = 10_000;

/** Read at a time while looking through. */
export const LIST_STEP = 500;

/** What is shown of one result. The log has all of it. */
export const SHOWN_CHARS_MAX = 64 * 1024;

/** One update of what is said: a client that does not read is held a few of them. */
export const PIECE_CHARS_MAX = 32 * 1024;

/** A title is one line in a list. */
export const TITLE_CHARS_MAX = 120;

/** How long following rests after it has failed, before it is tried again. */
export const FOLLOW_REST_MS = 1_000;

/** How long a stop of one call is waited for before the asker is told that it takes longer. */
export const CALL_WAIT_MS = 5_000;
