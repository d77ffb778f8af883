// Every bound of the system, each with its reason. A limit is a decision.

/** A queue longer than this is a client that does not listen; the 101st prompt is refused, not dropped. */
export const QUEUE_RUNS_MAX = 100;

/** What one session may keep waiting. Bounds memory, and the snapshot that carries the queue. */
export const QUEUE_BYTES_MAX = 4 * 1024 * 1024;

/** A prompt is text and a little data; attachments travel by reference. */
export const PROMPT_BYTES_MAX = 1024 * 1024;

/** Input and result of a call, in the log. More belongs into a file. */
export const CALL_BYTES_MAX = 1024 * 1024;

/** Of a result that is larger: its beginning and its end together. */
export const RESULT_CHARS_KEPT = 131_072;

/** Objects and lists in a result that is not plain JSON. */
export const RESULT_ITEMS_MAX = 10_000;

/** The text of one turn that is kept. What comes after it is counted and said, not kept. */
export const TURN_CHARS_MAX = 1024 * 1024;

/** The text of its last turn in the terminal event of a run and in its view. `turn.settled` has all of it. */
export const RUN_TEXT_CHARS_MAX = 16_384;

/** The name of a model and that of its provider, each. */
export const MODEL_NAME_CHARS_MAX = 256;

/** The calls that the view of a run lists: its latest ones. */
export const RUN_CALLS_MAX = 1_000;

/** Nesting of JSON that clients hand in; deeper structures break other people's parsers. */
export const JSON_DEPTH_MAX = 64;

/** An idempotency key is an id, not a document. */
export const KEY_CHARS_MAX = 256;

/** A title is read in a list. */
export const TITLE_CHARS_MAX = 1024;

/** The directory of a session is a path, and systems take none that is longer. */
export const DIRECTORY_CHARS_MAX = 4096;

/** A mode is a word that is read in a menu. */
export const MODE_CHARS_MAX = 64;

/** The modes of an agent: more of them nobody can choose from. */
export const MODES_MAX = 32;

/** How far the chain of causes of an error is followed in its message, and how many errors of one are named. */
export const ERROR_DEPTH_MAX = 5;

/** Of an object that was thrown, as JSON, in a message. */
export const ERROR_DATA_CHARS_MAX = 1000;

/** A note about why something was cancelled. */
export const NOTE_CHARS_MAX = 4096;

/** Live calls of one run; one more is refused as `overloaded`. Beyond this a model is looping. */
export const CALLS_LIVE_MAX = 256;

/** A run that has taken its worker down this often is not started again. */
export const ATTEMPTS_MAX = 3;

/** How often a decision is made anew because another writer was faster, before we say that we are overloaded. */
export const COMMIT_ATTEMPTS_MAX = 64;

/** How many events a loaded lane may be ahead of its snapshot: the most that is folded when it is loaded again. */
export const SNAPSHOT_EVENTS = 256;

/** How long the delete of a session waits for its runs and processes to end. Longer than any of them may take. */
export const DELETE_WAIT_MS = 10_000;

/** How often retention looks at a page of sessions, and how many those are. It costs next to nothing. */
export const RETENTION_EVERY_MS = 1_000;
export const RETENTION_SESSIONS_MAX = 256;

/** How many of the idlest sessions one look at all of them remembers: those that may be deleted after it. */
export const RETENTION_IDLE_SESSIONS_MAX = 1_024;

/** How long the counted size of the store is used before it is counted again. */
export const STORE_SIZE_MS = 10_000;

/** The time over which the worst delay of the event loop is reported. */
export const LOOP_DELAY_MS = 60_000;

/** Rows of runs whose events were removed: their outcomes and keys stay known until so many newer ones have come. */
export const RUN_ROWS_KEPT = 1_000;

/** Rows that one step of removing takes away: about 2 ms of the writer, which a stop may have to wait for. */
export const REMOVE_ROWS_MAX = 256;

/** One page of history: small enough to decode within a millisecond or so, large enough to amortise the trip. */
export const PAGE_EVENTS_MAX = 256;

/** Text in one page of history, beside its limit of events: what one reader holds in memory. */
export const PAGE_CHARS_MAX = 128 * 1024;

/** One page of a list of sessions or runs. */
export const PAGE_ROWS_MAX = 1_000;

/** Events of a session kept in memory for its followers, so that a live tail does not read the store. */
export const TAIL_EVENTS_MAX = 128;

/** What those may take together; larger events are read from the store. With a page and deltas: 1 MiB (G31). */
export const TAIL_BYTES_MAX = 256 * 1024;

/** Outcomes that a worker keeps in mind: they can be asked for when it has shut down. */
export const RECENT_RUNS_MAX = 1_024;

/** Events of all sessions kept for those who watch them all: some seconds of a busy house. */
export const ALL_SESSIONS_EVENTS_MAX = 8_192; // @fault small-caches:chronicle

/** What those may hold together. */
export const ALL_SESSIONS_CHARS_MAX = 8 * 1024 * 1024;

/** Deltas waiting for one subscriber. Beyond it the oldest are dropped and counted. */
export const DELTA_BYTES_MAX = 256 * 1024;

/** Deltas that continue each other are merged up to this size for a subscriber that is behind. */
export const DELTA_MERGED_BYTES = 4 * 1024;

/** Cooperative work gets this long to stop before it is abandoned and named. */
export const GRACE_MS = 1_500;

/**
 * From the end of the grace period, when processes are killed, until they must be gone. One that is not is reported as
 * `dying`. Together with the commit that records it, this is within the half second that a stop may take longer.
 */
export const DEATH_MS = 400;

/** A turn or tool that waited for something else to stop gets this long to return after that is over. */
export const RETURN_MS = 25;

/** The processes of a call that cannot be interrupted are asked to end when this much of the grace period is over. */
export const UNINTERRUPTED_PERCENT = 75;

/** Abort signals that fire in the tick of their stop. Those of a larger bulk stop fire right after it, in slices. */
export const ABORTS_AT_ONCE_MAX = 100;

/** How long one slice of a bulk stop may hold up the event loop: closing a connection takes a fraction of it. */
export const ABORT_SLICE_MS = 5;

/**
 * Promises of agents and tools that settle before the event loop turns, and for how long: beyond either they wait for
 * it. Enough that ordinary work never waits, few enough that a loop over them delays a timer by a few milliseconds.
 */
export const LOOP_TURN_PROMISES_MAX = 256;
export const LOOP_TURN_MS = 5;

/** Promises that work may still await after it was stopped, to clean up. Beyond them it is in a loop, and pauses. */
export const STOPPED_PROMISES_MAX = 64;

/** How long each promise waits then: a loop that does not end costs next to nothing. */
export const STOPPED_PAUSE_MS = 50;

/** The event loop has not turned for this long while work is live: it is blocked, and what blocks it is named. */
export const LOOP_BLOCKED_MS = 1_000;

/** Text of a live turn is sent to the log this long after it was produced: durable well within 250 ms. */
export const EXTEND_EVERY_MS = 150;

/** Runs that are live at once in one worker, unless the host says otherwise. */
export const LIVE_RUNS_MAX = 1_024;

/** How long a worker may be silent before another may drive its lanes. */
export const LEASE_TTL_MS = 10_000;

/**
 * How often a worker renews, and looks for what nobody drives: a run whose worker is gone is taken over within two
 * seconds of its lease (G24). Two thirds of the term have room for several attempts that fail.
 */
export const LEASE_RENEW_MS = 1_500; // @fault taken-over-late

/** Total time of an orderly shutdown, everything included. */
export const SHUTDOWN_MS = 10_000;

/** First and longest pause between attempts to record what cannot be refused, while the store is in trouble. */
export const RETRY_FIRST_MS = 50;
export const RETRY_LAST_MS = 2_000;

/** The longest pause between attempts to load a session that cannot be loaded. */
export const LOAD_RETRY_LAST_MS = 60_000;

/**
 * How long a caller waits for the store. A write takes milliseconds; a store that takes longer hangs, and the caller
 * gets an error instead of waiting with it.
 */
export const STORE_WAIT_MS = 5_000;

/** A receipt is waited for at least this long, however short a caller's `waitMs`: a write takes milliseconds. */
export const RECEIPT_MS_MIN = 100;

/** Lanes that are idle and stay loaded. More are forgotten and loaded again when they are needed. */
export const IDLE_LANES_MAX = 1_024; // @fault small-caches:lanes

/** How long a caller may ask to wait for a settlement in one request. */
export const WAIT_MS_MAX = 10 * 60_000;

/**
 * How many requests with an idempotency key a session remembers of those that changed something. Keys of prompts are
 * never forgotten; stops of a session, and requests that changed nothing, are remembered for `MEMO_MS`.
 */
export const ANSWERS_KEPT = 64;

/**
 * Stops of a session, and requests that changed nothing, that a session remembers for each user: one every 21 seconds,
 * day and night. One more is carried out and refused, and none is forgotten.
 */
export const ANSWERS_PER_ACTOR_MAX = 4_096;

/** What their answers may have together. That to a stop of a thousand sessions takes a fiftieth of it. */
export const ANSWER_CHARS_PER_ACTOR_MAX = 8 * 1024 * 1024;

/**
 * Prompts of one user that were cancelled before they arrived. One more is refused, not forgotten. A client has a
 * thousand on their way to a session at most; of those that a cancel names, only those that have not arrived count.
 */
export const MEMOS_PER_ACTOR_MAX = 4_096;

/** How long a memo is kept: longer than any client sends a request again. */
export const MEMO_MS = 24 * 60 * 60_000;

/** How long a client sends a request again at most, however patient it is. A memo of it is still there by then. */
export const RESEND_MS_MAX = 12 * 60 * 60_000;

/** Questions of one run that are open at once. More would be a form, and nobody fills that in. */
export const QUESTIONS_OPEN_MAX = 64;

/** What the open questions of one run may carry together: they are kept with the lane, and go into its snapshot. */
export const QUESTIONS_BYTES_MAX = 4 * 1024 * 1024;

/** Without an answer by then a question expires, unless it says otherwise. */
export const QUESTION_MS = 60 * 60_000;

/** What a question may carry besides the input it asks about. */
export const QUESTION_BYTES_MAX = 64 * 1024;

/** What waits in a session's inbox for its next turn. Drained at every turn, so a full one means that none comes. */
export const INBOX_ITEMS_MAX = 100; // @fault room-not-reserved:limit

/** One thing to be heard: a reminder, or the short form of a result. */
export const ITEM_BYTES_MAX = 64 * 1024;

/** Approvals for the whole session that are remembered; the oldest is forgotten, and asked for again. */
export const GRANTS_KEPT = 256;

/** A summary stands for a whole conversation, and goes with every request. */
export const SUMMARY_CHARS_MAX = 256 * 1024;

/** A conversation up to this size is kept with its loaded session between runs; a larger one is read again. */
export const CONTEXT_KEPT_BYTES = 256 * 1024;

/** What one call can say it has changed. */
export const CHANGES_MAX = 256;

/** How long a hook may take. */
export const HOOK_MS = 5_000;

/** How long whoever cancels one call waits to hear what became of it, unless they say otherwise. */
export const CALL_WAIT_MS = 5_000;

/** One argument or variable, its closing NUL included: Linux takes no longer one (MAX_ARG_STRLEN). */
export const ARGUMENT_BYTES_MAX = 128 * 1024;

/** All arguments together, with what the kernel adds for each. Below what any machine takes, environment included. */
export const ARGUMENTS_BYTES_MAX = 1024 * 1024;

/** What the kernel needs for an argument besides its bytes: a closing NUL, and a pointer. */
export const ARGUMENT_OVERHEAD_BYTES = 9;

/** A path of a directory, its closing NUL included: what Linux takes (PATH_MAX). */
export const PATH_BYTES_MAX = 4_096;

/** Columns and rows of a terminal. Larger ones are no screen, and programs allocate by it. */
export const TERMINAL_CELLS_MAX = 1_000;

/** Processes of one session at once. A model that has started more has lost count; each costs the machine something. */
export const PROCESSES_LIVE_MAX = 64;

/** The end of a process's output that goes into the log, and to the model. The rest is in a file. */
export const OUTPUT_TAIL_CHARS = 4_096;
