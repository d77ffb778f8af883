// The bounds of the server, each with its reason. What the house itself allows is in `core/limits.ts`.

/** Wrong tokens within `LOCKOUT_WINDOW_MS` before guesses are told to wait. People mistype; ten is a program. */
export const TOKEN_FAILURES_MAX = 10;
export const LOCKOUT_WINDOW_MS = 60_000;
export const LOCKOUT_MS = 60_000;

/** Mutations of one token. A person never gets there; a loop that has gone wrong does at once. */
export const MUTATIONS_PER_SECOND = 20;
/** What may come at once after a quiet while: a client that catches up, or a page that opens. */
export const MUTATIONS_BURST = 40;

/** Event streams of one token. A browser, a few command lines and a bridge are below ten. */
export const STREAMS_PER_TOKEN_MAX = 32;
/**
 * Requests that one shared stream answers at once: each may hold one piece of text for its reader. All tabs of a
 * browser may share one stream, and each follows as many runs as a page shows.
 */
export const STREAM_REQUESTS_MAX = 2_048;
/** The first of an answer that comes in pieces; each next one may be twice as long, up to a piece. */
export const STREAM_FIRST_CHARS = 512;
/** Stops are taken beyond that: what is followed keeps none of them out. */
export const STREAM_STOPS_MAX = 4_096;
/** Whole answers that wait to be sent on one shared stream. Beyond, its client asks and does not read: it is ended. */
export const STREAM_UNSENT_MAX = 16_384;
/** How often a WebSocket that streams is asked for a sign of life. One that gives none until the next time is dead. */
export const SOCKET_PING_MS = 30_000;
/** How often the tokens of open streams are looked at again. A stream may be open for days, and its token revoked. */
export const STREAM_CHECK_MS = 1_000;
/** When to ask for a stream again that was one too many. */
export const STREAM_RETRY_S = 5;

/** Tokens of one server. Each is compared with on every request. */
export const TOKENS_MAX = 256;
/** A full `tokens.json` is a tenth of this. */
export const TOKENS_FILE_BYTES_MAX = 1024 * 1024;
/** How long a change of `tokens.json` by another program may go unnoticed. */
export const TOKENS_CHECK_MS = 1_000;
/** Writing the tokens takes milliseconds. Whoever has been at it for longer than this has died of it. */
export const TOKENS_WRITE_MS_MAX = 10_000;
/** After a rotation the old secret may go on, so that programs can be told the new one; never for longer than this. */
export const TOKEN_GRACE_MS_MAX = 7 * 24 * 60 * 60 * 1000;
/** A token has 49 characters. More than this is not one, and is not looked at. */
export const AUTHORIZATION_CHARS_MAX = 512;

/** The longest name DNS knows, and a port. */
export const HOST_CHARS_MAX = 261;

/** Connections of one listener. Beyond it the oldest without a valid token gives way, and then the oldest idle one. */
export const CONNECTIONS_MAX = 1_024;
/** More connections than that, for stops alone: of a listener whose connections are all busy. */
export const CONNECTIONS_FOR_STOPS = 64;
/** Requests sent ahead on one connection. Browsers send none ahead, and proxies few. */
export const PIPELINED_MAX = 32;
/** All headers of a request, its target included. */
export const HEADERS_BYTES_MAX = 16 * 1024;
/** The target of a request alone: ids, a position, a few options. */
export const TARGET_CHARS_MAX = 8 * 1024;
/** Headers are one packet or two; whoever needs longer holds a connection open for nothing. */
export const HEADERS_TIMEOUT_MS = 10_000;
/** The whole request, with its body, until its last byte has come. The answer may take as long as it likes. */
export const REQUEST_TIMEOUT_MS = 30_000;
/** How often connections are looked at for the two above. */
export const TIMEOUT_CHECK_MS = 2_000;
/** An idle connection is kept for the next request of the same client. */
export const KEEP_ALIVE_MS = 5_000;
/** From connecting to an agreed key. */
export const HANDSHAKE_TIMEOUT_MS = 10_000;
/**
 * A body on the wire. A prompt has at most 1 MiB, and JSON may need two bytes for one (a quote, a line feed); a body
 * of nothing but control characters needs six, and is no prompt.
 */
export const BODY_BYTES_MAX = 2 * 1024 * 1024;
/** What is read and thrown away of a body that nobody wants, so that its sender gets to see the answer. */
export const UNWANTED_BYTES_MAX = 4 * 1024 * 1024;
/** A reader that does not take what is ready for it for this long is let go. It resumes where it was. */
export const READER_STALL_MS = 60_000;
/** How long a socket file may take to answer before we say that somebody is there. */
export const SOCKET_PROBE_MS = 1_000;
/** What fits into a socket's address on every system we know, without the byte that ends it. */
export const SOCKET_PATH_BYTES_MAX = 103;

/** Connections of all editors and programs that speak ACP. Each is followed, and may hold 1 MiB for its reader. */
export const ACP_CONNECTIONS_MAX = 256;
/** What one of them holds for a reader that is slow. Then nothing more is made for it until it has read some. */
export const ACP_UNREAD_BYTES_MAX = 512 * 1024;
/** What may wait to be read from one WebSocket: a message of the largest size, behind another. Beyond, it is closed. */
export const ACP_WAITING_BYTES_MAX = 2 * BODY_BYTES_MAX;
/** Over HTTP: sessions of one connection that have something to tell and nobody who reads it. */
export const ACP_UNREAD_SESSIONS_MAX = 64;
/** An id that a client makes up for a request, or names a session by. Ours have a fifth of this. */
export const ACP_ID_CHARS_MAX = 256;
/** Streams of one connection over HTTP: one of its own, and one for each session it may have open. */
export const ACP_STREAMS_MAX = 257;
/** Over HTTP: requests of one connection that wait for room in what it has not read. Each holds a socket and a body. */
export const ACP_HELD_MAX = 16;
/** Questions of ours to one client whose answers are awaited. People are asked a few at a time. */
export const ACP_ASKED_MAX = 1_024;
/** From a WebSocket to its first message, which is due at once. */
export const ACP_GREETING_MS = 10_000;
/** How often a WebSocket is asked for a sign of life. One that gives none until the next time is dead. */
export const ACP_PING_MS = 30_000;
/** Over HTTP nobody says when a client has died. One that neither reads nor asks for this long has. */
export const ACP_IDLE_MS = 5 * 60_000;
/** At a shutdown: from the ends of the runs to the answers of their prompts, which takes milliseconds. */
export const ACP_ANSWERS_MS = 1_000;

/** When to send again what was refused for a passing reason: a full queue, a store in trouble, a shutdown. */
export const RETRY_AFTER_S = 1;

/** Said to a reader while nothing happens, so that proxies do not take the connection for dead. */
export const HEARTBEAT_MS = 15_000;
/** How soon a browser that was cut off comes back. */
export const STREAM_RETRY_MS = 1_000;
/** One piece of a stream: what a reader that does not read costs its connection. A page with more goes in several. */
export const PIECE_CHARS_MAX = 64 * 1024;
/** How long a shutdown waits for readers to take the last of their streams. */
export const DRAIN_MS = 2_000;
/** Pages of history that are looked through for one process; beyond, it is told without its row. */
export const ROW_PAGES_MAX = 16;
/** Refusals of strangers that are written into the audit trail: a flood must not wash out what people have done. */
export const STRANGERS_NOTED_MAX = 60;
export const STRANGERS_WINDOW_MS = 60_000;
/** Runs whose outcomes somebody waits for, or has waited for: more than can be live and queued in a busy house. */
export const OUTCOMES_AWAITED_MAX = 65_536;
/** Runs whose outcomes one request waits for: as many of the longest ids as a target has room for. */
export const OUTCOMES_TOGETHER_MAX = 60;
/** Rows of a list, if nobody says how many. */
export const ROWS_DEFAULT = 100;
