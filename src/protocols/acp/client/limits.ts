// Limits of the ACP client, each with its reason.

/** How long an agent may take to answer its first requests: some download themselves first. */
export const START_MS = 60_000;

/** The maximum of the time limits in the options. */
export const START_MS_MAX = 10 * 60_000;

/** How long the process of an idle session is kept: its memory is worth more than a quick start. */
export const IDLE_MS = 10 * 60_000;

/** Processes kept for idle sessions. Beyond this the longest idle one is ended. */
export const IDLE_PROCESSES_MAX = 16;

/** How long an idle process may take to exit once its input is closed. */
export const EXIT_MS = 2_000;

/** Bytes of one message of an agent: enough for a picture or a large file. */
export const MESSAGE_BYTES_MAX = 32 * 1024 * 1024;

/** Bytes kept on disk of each output stream of an agent. Its messages are handled as they arrive and are in the log. */
export const OUTPUT_KEPT_BYTES_MAX = 256 * 1024;

/** Shares of the turn's grace period: until the cancel is repeated, and until the process is ended. */
export const REPEAT_SHARE = 0.35;
export const END_SHARE = 0.6;

/** Share of the grace period for the process to clean up. The rest is for the kernel, and for verification. */
export const CLEANUP_SHARE = 0.15;

/** How often new messages for the live run are polled, if the agent can accept them while it works. */
export const STEER_POLL_MS = 250;

/** How long it may take to confirm one of them. */
export const STEER_MS = 1_000;

/** How long a call that is announced without input waits for it: the recorded input is never changed. */
export const HOLD_MS = 50;

/** How long text waits for the record of the call before it. A commit takes milliseconds; a hook may take longer. */
export const ORDER_WAIT_MS = 1_000;

/**
 * Shares of the remaining grace period: from SIGTERM to SIGKILL for the commands of a cancelled run, and until they are
 * gone.
 */
export const COMMANDS_GRACE_SHARE = 0.4;
export const COMMANDS_LIMIT_SHARE = 0.85;

/** How long an agent may take to answer a probe after processes that it had started were ended. */
export const PROBE_MS = 2_000;

/** Mirrored calls of one prompt. An agent that makes more is in a loop. */
export const CALLS_MAX = 4_096;

/** Characters of the input or result of a mirrored call: half of the log's limit, because a call may have both. */
export const CALL_CHARS_MAX = 256 * 1024;

/** Characters of one progress update of a call. */
export const PROGRESS_CHARS_MAX = 2_000;

/** Characters of a call's name, and of an agent's own error message. */
export const NAME_CHARS_MAX = 200;
export const ERROR_CHARS_MAX = 1_000;

/** Bytes of stderr in the error about an agent that has ended. */
export const STDERR_BYTES_MAX = 2_000;

/** Characters of the conversation for an agent that does not remember it. If it is longer, its end. */
export const TRANSCRIPT_CHARS_MAX = 200_000;

/** Sessions whose settings and last updates are kept while no client has them open. */
export const SESSIONS_KEPT_MAX = 1_024;

/** Characters of an agent's own session id. */
export const SESSION_ID_CHARS_MAX = 512;

/** Nesting of JSON: the log's limit, less the nesting that Belay adds. */
export const DEPTH_MAX = 56;
