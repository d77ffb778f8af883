// Timeouts, retry counts and sizes of the client, each with its reason.

/** Timeout of a response, on top of the time the server is asked to wait. A healthy server responds much faster. */
export const REQUEST_MS = 30_000;

/** Attempts per request before it fails. With the pauses below this takes about half a minute. */
export const ATTEMPTS_MAX = 8;

/**
 * Attempts per stop that the server has carried out but cannot record: its store may be busy for a moment. The caller
 * gets the error after a few seconds instead of half a minute.
 */
export const STOP_ATTEMPTS_MAX = 3;

/** First and longest pause between two attempts. Pauses double in between and have jitter. */
export const PAUSE_FIRST_MS = 250;
export const PAUSE_LAST_MS = 10_000;

/** How long a server may be unreachable before requests and streams reject. A restart takes less. */
export const PATIENCE_MS = 60_000;

/** Longest `Retry-After` that the client honours. */
export const RETRY_AFTER_MS_MAX = 60_000;

/**
 * Longest wait of one request. Longer waits are split, because proxies cut connections that are silent for a minute.
 */
export const WAIT_PIECE_MS = 25_000;

/** Runs per request for outcomes: as many of the longest ids as fit into a URL. */
export const OUTCOMES_TOGETHER_MAX = 60;

/** Concurrent waits after a cancel of everything. Browsers allow fewer connections and queue the rest. */
export const WAITS_AT_ONCE_MAX = 16;

/** A stream that sends nothing for this long is dead: the server sends a heartbeat every 15 seconds. */
export const SILENCE_MS = 45_000;

/** How long a stop waits for the shared connection to open before it is sent separately. */
export const STOP_OPEN_MS = 500;

/** Concurrent short requests, not counting stops. Leaves two of a browser's six connections free. */
export const SHORT_REQUESTS_MAX = 4;

/** If the server has not acknowledged a request by then, the connection is dead and is closed. */
export const RECEIVED_MS = 15_000;

/** How long an idle shared connection stays open. An open connection keeps a Node program alive. */
export const STREAM_LINGER_MS = 250;

/** Characters of a response that are read before the client acknowledges them: a quarter of the server's window. */
export const READ_CHARS = 64 * 1024;

/** Consecutive times a stream may skip an event before reading it fails. */
export const JUMPS_MAX = 3;

/** Consecutive times a server may end a stream because of an internal failure before reading it fails. */
export const FAULTS_MAX = 3;

/** Largest response that is read. Transcripts can be long; this bounds a response that never ends. */
export const ANSWER_BYTES_MAX = 128 * 1024 * 1024;

/** Largest error response that is read. */
export const ERROR_BYTES_MAX = 64 * 1024;

/** Input of a process per request, well below the server's limit even when encoded as base64. */
export const INPUT_BYTES_MAX = 256 * 1024;

/** Unanswered prompts per session. A caller with more than this does not await `accepted`. */
export const UNSENT_PROMPTS_MAX = 1_000;
