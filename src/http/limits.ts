// The limits of the HTTP server, each with its reason. The limits of Belay itself are in `core/limits.ts`.

/** Wrong tokens within `LOCKOUT_WINDOW_MS` that trigger a lockout. People mistype a few times; ten is a program. */
export const TOKEN_FAILURES_MAX = 10;
export const LOCKOUT_WINDOW_MS = 60_000;
export const LOCKOUT_MS = 60_000;

/** Mutations of one token. A person never reaches it; a runaway loop does at once. */
export const MUTATIONS_PER_SECOND = 20;
/** Burst after a pause: a client that catches up, or a page that opens. */
export const MUTATIONS_BURST = 40;

/** Event streams of one token. A browser, a few command lines and a bridge need fewer than ten. */
export const STREAMS_PER_TOKEN_MAX = 32;
/**
 * Concurrent requests on one shared stream; each may buffer one piece of text. All tabs of a browser may share one
 * stream, and each follows as many runs as a page shows.
 */
export const STREAM_REQUESTS_MAX = 2_048;
/** Length of the first piece of a response; each next piece may be twice as long, up to `PIECE_CHARS_MAX`. */
export const STREAM_FIRST_CHARS = 512;
/** Concurrent requests including stops. It is higher, so that followers cannot keep a stop out. */
export const STREAM_STOPS_MAX = 4_096;
/** Unsent complete responses on one shared stream. Beyond it the client does not read: the stream is closed. */
export const STREAM_UNSENT_MAX = 16_384;
/** Interval of pings on a streaming WebSocket. Without a pong until the next ping, the connection is dead. */
export const SOCKET_PING_MS = 30_000;
/** Interval at which the tokens of open streams are verified again. A stream may outlive its token by days. */
export const STREAM_CHECK_MS = 1_000;
/** Retry-After of a stream that was refused by the limit. */
export const STREAM_RETRY_S = 5;

/** Tokens of one server. Every request is compared with all of them. */
export const TOKENS_MAX = 256;
/** A full `tokens.json` is a tenth of this. */
export const TOKENS_FILE_BYTES_MAX = 1024 * 1024;
/** Maximum delay until a change of `tokens.json` by another process is noticed. */
export const TOKENS_CHECK_MS = 1_000;
/** A write takes milliseconds; a lock older than this belongs to a crashed process. */
export const TOKENS_WRITE_MS_MAX = 10_000;
/** Maximum grace period of the old secret after a rotation, in which programs get the new one. */
export const TOKEN_GRACE_MS_MAX = 7 * 24 * 60 * 60 * 1000;
/** A token has 49 characters. A longer header is not a token and is not parsed. */
export const AUTHORIZATION_CHARS_MAX = 512;

/** The longest DNS name, and a port. */
export const HOST_CHARS_MAX = 261;

/** Connections of one listener. Beyond it the oldest without a valid token is closed, and then the oldest idle one. */
export const CONNECTIONS_MAX = 1_024;
/** Additional connections for stops only, when all connections of a listener are busy. */
export const CONNECTIONS_FOR_STOPS = 64;
/** Pipelined requests on one connection. Browsers do not pipeline, and proxies do it a little. */
export const PIPELINED_MAX = 32;
/** All headers of a request, including its target. */
export const HEADERS_BYTES_MAX = 16 * 1024;
/** The target of a request alone: ids, a cursor, a few options. */
export const TARGET_CHARS_MAX = 8 * 1024;
/** Headers arrive in one or two packets; a client that needs longer only holds the connection open. */
export const HEADERS_TIMEOUT_MS = 10_000;
/** Time for the last byte of the request and its body to arrive. The response may take any time. */
export const REQUEST_TIMEOUT_MS = 30_000;
/** Interval at which connections are checked for the two timeouts above. */
export const TIMEOUT_CHECK_MS = 2_000;
/** How long an idle connection is kept for the next request of the same client. */
export const KEEP_ALIVE_MS = 5_000;
/** Time for the TLS handshake. */
export const HANDSHAKE_TIMEOUT_MS = 10_000;
/**
 * A body on the wire. A prompt has at most 1 MiB, and JSON may need two bytes for one (a quote, a line feed). Only a
 * body of control characters needs six, and that is not a prompt.
 */
export const BODY_BYTES_MAX = 2 * 1024 * 1024;
/** Bytes of an unwanted body that are read and discarded, so that its sender can read the response. */
export const UNWANTED_BYTES_MAX = 4 * 1024 * 1024;
/** A reader that reads nothing for this long is disconnected. It can resume where it was. */
export const READER_STALL_MS = 60_000;
/** Time for an existing socket file to answer. Beyond it, the socket counts as in use. */
export const SOCKET_PROBE_MS = 1_000;
/** Maximum length of a socket path on all supported systems, without the terminating byte. */
export const SOCKET_PATH_BYTES_MAX = 103;

/** ACP connections of one server. Each has a follower and may buffer 1 MiB for its reader. */
export const ACP_CONNECTIONS_MAX = 256;
/** Unread bytes of one ACP connection. Beyond it nothing more is produced until the client has read some. */
export const ACP_UNREAD_BYTES_MAX = 512 * 1024;
/** Buffered input of one WebSocket: two messages of the largest size. Beyond it the connection is closed. */
export const ACP_WAITING_BYTES_MAX = 2 * BODY_BYTES_MAX;
/** ACP over HTTP: sessions of one connection with output that no stream reads. */
export const ACP_UNREAD_SESSIONS_MAX = 64;
/** An id of a request or session that an ACP client chooses. Belay's own ids have a fifth of this. */
export const ACP_ID_CHARS_MAX = 256;
/** Streams of one ACP connection over HTTP: its own, and one for each session that it may have open. */
export const ACP_STREAMS_MAX = 257;
/** ACP over HTTP: requests of one connection that are blocked by its unread output. Each holds a socket and a body. */
export const ACP_HELD_MAX = 16;
/** Unanswered requests of the server to one ACP client. People are asked a few questions at a time. */
export const ACP_ASKED_MAX = 1_024;
/** Time for the first message on a WebSocket, which is due immediately. */
export const ACP_GREETING_MS = 10_000;
/** Interval of pings on an ACP WebSocket. Without a pong until the next ping, the connection is dead. */
export const ACP_PING_MS = 30_000;
/** ACP over HTTP: idle timeout. Without a connection, a client that has died cannot be noticed otherwise. */
export const ACP_IDLE_MS = 5 * 60_000;
/** At shutdown: time from the end of the runs to the responses of their prompts, which takes milliseconds. */
export const ACP_ANSWERS_MS = 1_000;

/** Retry-After for temporary errors: a full queue, a failing store, a shutdown. */
export const RETRY_AFTER_S = 1;

/** Interval of heartbeats on an idle stream, so that proxies do not close the connection. */
export const HEARTBEAT_MS = 15_000;
/** Reconnection delay of a browser after a lost connection. */
export const STREAM_RETRY_MS = 1_000;
/** One piece of a stream: the memory that a reader who does not read costs. A larger page is sent in several pieces. */
export const PIECE_CHARS_MAX = 64 * 1024;
/** How long a shutdown waits for readers to read the end of their streams. */
export const DRAIN_MS = 2_000;
/** Pages of history that are searched for one process; beyond it, it is returned without its row. */
export const ROW_PAGES_MAX = 16;
/** Denials without a valid token that are recorded in the audit trail: a flood must not displace real records. */
export const ANONYMOUS_NOTED_MAX = 60;
export const ANONYMOUS_WINDOW_MS = 60_000;
/** Runs whose outcomes are or were awaited: more than can be live and queued on a busy server. */
export const OUTCOMES_AWAITED_MAX = 65_536;
/** Runs whose outcomes one request waits for: as many of the longest ids as fit into a target. */
export const OUTCOMES_TOGETHER_MAX = 60;
/** Rows of a list without a `limit`. */
export const ROWS_DEFAULT = 100;
