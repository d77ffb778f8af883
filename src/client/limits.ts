// How long the client waits, how often it tries, and how much it keeps. Each with its reason.

/** How long an answer may take, besides the time we ask the server to wait. A server that works answers in far less. */
export const REQUEST_MS = 30_000;

/** How often one request is made before its caller hears of the trouble: with the pauses below, about half a minute. */
export const ATTEMPTS_MAX = 8;

/**
 * The same for a stop that the server has carried out and cannot record: its store may be busy for a moment. Whoever
 * wants something stopped is told after a few seconds, and not after half a minute.
 */
export const STOP_ATTEMPTS_MAX = 3;

/** First and longest pause between two attempts. Doubled in between, and never the same for two clients. */
export const PAUSE_FIRST_MS = 250;
export const PAUSE_LAST_MS = 10_000;

/** How long a server may be gone before whoever waits is told. A restart takes less. */
export const PATIENCE_MS = 60_000;

/** A server that asks us to stay away for longer than this is not obeyed to the letter. */
export const RETRY_AFTER_MS_MAX = 60_000;

/** One wait at the server. Longer ones are made of several, since proxies cut what is silent for a minute. */
export const WAIT_PIECE_MS = 25_000;

/** Runs whose outcomes one request waits for: as many of the longest ids as the target of a request may have. */
export const OUTCOMES_TOGETHER_MAX = 60;

/** Waits at the server at once, after a cancel of everything. Browsers have fewer connections, and queue the rest. */
export const WAITS_AT_ONCE_MAX = 16;

/** Without a byte for this long a stream is dead: the server says something every 15 seconds. */
export const SILENCE_MS = 45_000;

/** How long a stop waits for the shared connection to open before it is sent by itself. */
export const STOP_OPEN_MS = 500;

/** Short requests at once, besides stops: two of the six connections that a browser has are left. */
export const SHORT_REQUESTS_MAX = 4;

/** A request that the server has not confirmed by then has gone into a dead connection, which is given up. */
export const RECEIVED_MS = 15_000;

/** How long the shared connection is kept for the next request. An open one keeps a program alive. */
export const STREAM_LINGER_MS = 250;

/** How much of an answer is read before the server is told: a quarter of what it sends ahead. */
export const READ_CHARS = 64 * 1024;

/** How often in a row a stream may skip an event before we say that its server is at fault. */
export const JUMPS_MAX = 3;

/** How often in a row a server may end a stream because of a failure of its own before the reader is told. */
export const FAULTS_MAX = 3;

/** The most that is read of one answer. A transcript can be long; something that never ends is none. */
export const ANSWER_BYTES_MAX = 128 * 1024 * 1024;

/** What is read of an answer that says what went wrong. */
export const ERROR_BYTES_MAX = 64 * 1024;

/** How much input of a process goes into one request: well below what the server takes, also as base64. */
export const INPUT_BYTES_MAX = 256 * 1024;

/** Prompts of one session that wait for the one before them to be answered. More is a caller that does not listen. */
export const UNSENT_PROMPTS_MAX = 1_000;
