// The limits of the core and the engine, each with its reason. A limit is a decision.

/** A longer queue means that its client ignores the answers. The 101st prompt is refused, not dropped. */
export const QUEUE_RUNS_MAX = 100;

/** The prompts that wait in one session, together. Limits memory, and the snapshot that contains the queue. */
export const QUEUE_BYTES_MAX = 4 * 1024 * 1024;

/** A prompt is text and a little data; attachments are passed by reference. */
export const PROMPT_BYTES_MAX = 1024 * 1024;

/** Input and result of a call, in the log. Larger data belongs in a file. */
export const CALL_BYTES_MAX = 1024 * 1024;

/** Of a larger result: its beginning and its end together. */
export const RESULT_CHARS_KEPT = 131_072;

/** Objects and lists in a result that is not plain JSON. */
export const RESULT_ITEMS_MAX = 10_000;

/** The text of one turn that is kept. Further text is counted, not kept. */
export const TURN_CHARS_MAX = 1024 * 1024;

/** The text of its last turn in the terminal event of a run and in its view. `turn.settled` has all of it. */
export const RUN_TEXT_CHARS_MAX = 16_384;

/** The name of a model and that of its provider, each. */
export const MODEL_NAME_CHARS_MAX = 256;

/** The calls that the view of a run lists: its latest ones. */
export const RUN_CALLS_MAX = 1_000;

/** Nesting of JSON from clients. Deeper structures break other parsers. */
export const JSON_DEPTH_MAX = 64;

/** An idempotency key is an id, not a document. */
export const KEY_CHARS_MAX = 256;

/** A title is shown in a list. */
export const TITLE_CHARS_MAX = 1024;

/** The directory of a session is a path, and no system accepts a longer one. */
export const DIRECTORY_CHARS_MAX = 4096;

/** A mode is a word that is shown in a menu. */
export const MODE_CHARS_MAX = 64;

/** The modes of one agent. A longer menu is not usable. */
export const MODES_MAX = 32;

/** How many causes of an error its message includes, and how many errors of an AggregateError. */
export const ERROR_DEPTH_MAX = 5;

/** A thrown object, as JSON, in a message. */
export const ERROR_DATA_CHARS_MAX = 1000;

/** The note of a cancel. */
export const NOTE_CHARS_MAX = 4096;

/** Live calls of one run; one more is refused as `overloaded`. Beyond this a model is looping. */
export const CALLS_LIVE_MAX = 256;

/** A run whose workers have vanished this often is not started again. */
export const ATTEMPTS_MAX = 3;

/**
 * How often a decision is repeated because another writer was faster, before the request is refused as `overloaded`.
 */
export const COMMIT_ATTEMPTS_MAX = 64;

/** How many events a loaded lane may be ahead of its snapshot: the most that is folded when it is loaded again. */
export const SNAPSHOT_EVENTS = 256;

/** How long deleting a session waits for its runs and processes to end. Longer than any of them may take. */
export const DELETE_WAIT_MS = 10_000;

/** How often retention examines a page of sessions, and the size of the page. It costs next to nothing. */
export const RETENTION_EVERY_MS = 1_000;
export const RETENTION_SESSIONS_MAX = 256;

/** How many of the longest inactive sessions retention remembers after a pass: those that may be deleted. */
export const RETENTION_IDLE_SESSIONS_MAX = 1_024;

/** How long the counted size of the store is used before it is counted again. */
export const STORE_SIZE_MS = 10_000;

/** The time window over which the longest delay of the event loop is reported. */
export const LOOP_DELAY_MS = 60_000;

/** Rows of runs whose events were removed. Their outcomes and keys stay known until this many newer ones have come. */
export const RUN_ROWS_KEPT = 1_000;

/** Rows that one step of a removal deletes: about 2 ms of the writer, which a stop may have to wait for. */
export const REMOVE_ROWS_MAX = 256;

/** One page of history: small enough to decode within about a millisecond, large enough to amortise the round trip. */
export const PAGE_EVENTS_MAX = 256;

/** Text in one page of history, beside its limit of events: what one reader holds in memory. */
export const PAGE_CHARS_MAX = 128 * 1024;

/** One page of a list of sessions or runs. */
export const PAGE_ROWS_MAX = 1_000;

/** Events of a session kept in memory for its followers, so that a live tail does not read the store. */
export const TAIL_EVENTS_MAX = 128;

/** The bytes of those events together; larger events are read from the store. With a page and deltas: 1 MiB (G31). */
export const TAIL_BYTES_MAX = 256 * 1024;

/** Outcomes that a worker keeps in memory: they can be requested after it has shut down. */
export const RECENT_RUNS_MAX = 1_024;

/** Events of all sessions kept for the followers of all sessions: some seconds of a busy server. */
export const ALL_SESSIONS_EVENTS_MAX = 8_192; // @fault small-caches:chronicle

/** The characters of those events together. */
export const ALL_SESSIONS_CHARS_MAX = 8 * 1024 * 1024;

/** Deltas waiting for one subscriber. Beyond it the oldest are dropped and counted. */
export const DELTA_BYTES_MAX = 256 * 1024;

/** Adjacent deltas are merged up to this size for a slow subscriber. */
export const DELTA_MERGED_BYTES = 4 * 1024;

/** How long cooperative work may take to stop before it is abandoned and named. */
export const GRACE_MS = 1_500;

/**
 * From the end of the grace period, when processes are killed, until they must have ended. A process that has not is
 * reported as `dying`. Together with the commit that records it, this is within the half second that a stop may take
 * longer.
 */
export const DEATH_MS = 400;

/** How long a turn or tool that waited for other work to stop may take to return afterwards. */
export const RETURN_MS = 25;

/** The processes of a call that cannot be interrupted get their first signal after this part of the grace period. */
export const UNINTERRUPTED_PERCENT = 75;

/** Abort signals that fire in the tick of their stop. Those of a larger bulk stop fire in slices right after it. */
export const ABORTS_AT_ONCE_MAX = 100;

/** How long one slice of a bulk stop may block the event loop: closing a connection takes a fraction of it. */
export const ABORT_SLICE_MS = 5;

/**
 * Promises of agents and tools that settle within one turn of the event loop, and for how long. Promises beyond either
 * wait for the next turn. Enough that ordinary work never waits, few enough that a loop over them delays a timer by a
 * few milliseconds.
 */
export const LOOP_TURN_PROMISES_MAX = 256;
export const LOOP_TURN_MS = 5;

/** Promises that stopped work may still await, in order to clean up. Beyond them it is throttled as a loop. */
export const STOPPED_PROMISES_MAX = 64;

/** How long each promise waits then, so that an endless loop costs next to nothing. */
export const STOPPED_PAUSE_MS = 50;

/**
 * The event loop is blocked when it has not turned for this long while work is live. The code that blocks it is named.
 */
export const LOOP_BLOCKED_MS = 1_000;

/** Text of a live turn is sent to the log this long after it was produced: durable well within 250 ms. */
export const EXTEND_EVERY_MS = 150;

/** Runs that are live at once in one worker, unless the host says otherwise. */
export const LIVE_RUNS_MAX = 1_024;

/** How long a worker may be silent before another may claim its lanes. */
export const LEASE_TTL_MS = 10_000;

/**
 * How often a worker renews its leases, and looks for lanes without a worker: the run of a vanished worker is taken
 * over within two seconds of its lease's end (G24). Two thirds of the term leave room for several failed attempts.
 */
export const LEASE_RENEW_MS = 1_500; // @fault taken-over-late

/** Total time of a graceful shutdown, everything included. */
export const SHUTDOWN_MS = 10_000;

/** First and longest pause between attempts to record what cannot be refused, while the store fails. */
export const RETRY_FIRST_MS = 50;
export const RETRY_LAST_MS = 2_000;

/** The longest pause between attempts to load a session that fails to load. */
export const LOAD_RETRY_LAST_MS = 60_000;

/**
 * How long a caller waits for the store. A write takes milliseconds; if the store takes longer it hangs, and the caller
 * gets an error.
 */
export const STORE_WAIT_MS = 5_000;

/** A caller waits at least this long for a receipt, however short its `waitMs` is: a write takes milliseconds. */
export const RECEIPT_MS_MIN = 100;

/** Idle lanes that stay loaded (LRU). Others are unloaded, and loaded again when they are needed. */
export const IDLE_LANES_MAX = 1_024; // @fault small-caches:lanes

/** The longest time that one request may wait for a settlement. */
export const WAIT_MS_MAX = 10 * 60_000;

/**
 * How many requests with an idempotency key a session remembers, of those that changed something. Keys of prompts are
 * never forgotten; stops of a session, and requests that changed nothing, are remembered for `MEMO_MS`.
 */
export const ANSWERS_KEPT = 64;

/**
 * Stops of a session, and requests that changed nothing, that a session remembers for each user: one every 21 seconds,
 * day and night. One more is carried out and its answer refused, and none is forgotten.
 */
export const ANSWERS_PER_ACTOR_MAX = 4_096;

/** The answers to those, together. The answer to a stop of a thousand sessions takes a fiftieth of it. */
export const ANSWER_CHARS_PER_ACTOR_MAX = 8 * 1024 * 1024;

/**
 * Prompts of one user that were cancelled before they arrived. One more is refused, not forgotten. A client has at most
 * a thousand prompts in flight to a session; of those that a cancel names, only those that have not arrived count.
 */
export const MEMOS_PER_ACTOR_MAX = 4_096;

/** How long a memo is kept: longer than any client retries a request. */
export const MEMO_MS = 24 * 60 * 60_000;

/** How long a client retries a request at most, whatever its patience. Its memo still exists then. */
export const RESEND_MS_MAX = 12 * 60 * 60_000;

/** Open questions of one run. More would be a form, which would not be filled in. */
export const QUESTIONS_OPEN_MAX = 64;

/** The open questions of one run, together: they are kept with the lane, and are part of its snapshot. */
export const QUESTIONS_BYTES_MAX = 4 * 1024 * 1024;

/** A question expires after this time, unless it has another deadline. */
export const QUESTION_MS = 60 * 60_000;

/** The content of a question besides the input it is about. */
export const QUESTION_BYTES_MAX = 64 * 1024;

/** Items that wait for the next turn of a session. Every turn takes all of them: a full inbox means no turn comes. */
export const INBOX_ITEMS_MAX = 100; // @fault room-not-reserved:limit

/** One item: a reminder, or the short form of a result. */
export const ITEM_BYTES_MAX = 64 * 1024;

/** Approvals for the whole session that are remembered. The oldest is forgotten, and requested again. */
export const GRANTS_KEPT = 256;

/** A summary replaces a whole conversation, and is part of every request. */
export const SUMMARY_CHARS_MAX = 256 * 1024;

/** A conversation up to this size is cached with its loaded session between runs; a larger one is read again. */
export const CONTEXT_KEPT_BYTES = 256 * 1024;

/** The changes that one call can report. */
export const CHANGES_MAX = 256;

/** How long a hook may take. */
export const HOOK_MS = 5_000;

/** How long a caller waits for the end of the call it cancelled, unless it gives another time. */
export const CALL_WAIT_MS = 5_000;

/** One argument or variable, including its closing NUL: Linux accepts no longer one (MAX_ARG_STRLEN). */
export const ARGUMENT_BYTES_MAX = 128 * 1024;

/** All arguments together, with the kernel's overhead for each. Every machine accepts that, environment included. */
export const ARGUMENTS_BYTES_MAX = 1024 * 1024;

/** What the kernel needs for an argument besides its bytes: a closing NUL, and a pointer. */
export const ARGUMENT_OVERHEAD_BYTES = 9;

/** A path of a directory, including its closing NUL: the limit of Linux (PATH_MAX). */
export const PATH_BYTES_MAX = 4_096;

/** Columns and rows of a terminal. No screen is larger, and programs allocate memory by it. */
export const TERMINAL_CELLS_MAX = 1_000;

/** Live processes of one session. A model with more has lost control of them; each costs the machine something. */
export const PROCESSES_LIVE_MAX = 64;

/** The end of a process's output that is in the log, and that the model receives. The rest is in a file. */
export const OUTPUT_TAIL_CHARS = 4_096;
