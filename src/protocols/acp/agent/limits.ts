// Limits of the ACP agent, each with its reason.

/** Open sessions per connection: each is followed and holds one page of events. */
export const SESSIONS_MAX = 256;

/** Unanswered prompts per connection. Further prompts are refused; a stop never is. */
export const PROMPTS_OPEN_MAX = 1_024;

/** Updates in flight before the next one is created: enough to keep a pipe busy, little to hold. */
export const UPDATES_HELD_MAX = 32;

/** How long the answer to a close waits for the session's processes to end. */
export const CLOSE_WAIT_MS = 5_000;

/** Sessions on one page of a list. */
export const LIST_PAGE = 50;

/** First prompts that are cached for sessions without a title: about twenty pages of a list. */
export const FIRST_PROMPTS_MAX = 1_000;

/** Sessions scanned for one page, if few of them match. The page then ends early, with a cursor. */
export const LIST_SCAN_MAX = 10_000;

/** Sessions per read during the scan. */
export const LIST_STEP = 500;

/** Characters shown of one result. The log has all of it. */
export const SHOWN_CHARS_MAX = 64 * 1024;

/** Characters of one text update. Some of them are held for a client that does not read. */
export const PIECE_CHARS_MAX = 32 * 1024;

/** Characters of a title, which is one line in a list. */
export const TITLE_CHARS_MAX = 120;

/** Pause before following is retried after a failure. */
export const FOLLOW_REST_MS = 1_000;

/** How long a stop of one call is awaited before the answer reports that it takes longer. */
export const CALL_WAIT_MS = 5_000;
