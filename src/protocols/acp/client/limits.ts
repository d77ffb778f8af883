// Every bound of this folder, each with its reason.

/** How long an agent may take to answer its first questions: some download themselves first. */
export const START_MS = 60_000;

/** The longest anybody may wish for that. */
export const START_MS_MAX = 10 * 60_000;

/** How long the process of a session that nobody works in is kept: its memory is worth more than a quick answer. */
export const IDLE_MS = 10 * 60_000;

/** Processes kept for sessions that nobody works in. More, and the one that has waited longest is ended. */
export const IDLE_PROCESSES_MAX = 16;

/** How long one of those may take to end by itself once its input has ended. */
export const PARTING_MS = 2_000;

/** One message of an agent. A picture or a large file fits; what is longer is not a message. */
export const MESSAGE_BYTES_MAX = 32 * 1024 * 1024;

/** What is kept on disk of each stream of an agent. Its messages are heard as they come and are in the log. */
export const OUTPUT_KEPT_BYTES_MAX = 256 * 1024;

/** Of its grace a turn gives so much to `session/cancel` alone, and so much until its process is ended. */
export const ASK_AGAIN_SHARE = 0.35;
export const END_SHARE = 0.6;

/** And so much is left to the process to tidy up. What is over then is for the kernel, and for looking. */
export const TIDY_SHARE = 0.15;

/** How often people's words for the live run are looked for, if the agent can take them in while it works. */
export const STEER_EVERY_MS = 250;

/** How long it may take to say that it has taken one in. */
export const STEER_MS = 1_000;

/** How long a call that is announced without an input waits for it: what is recorded of it is never changed. */
export const HOLD_MS = 50;

/** How long text waits for the call before it to be recorded. A commit takes milliseconds; a hook may take longer. */
export const ORDER_WAIT_MS = 1_000;

/** Shares of the rest of the grace: from SIGTERM to SIGKILL for a cancelled run's commands, and until they are gone. */
export const COMMANDS_GRACE_SHARE = 0.4;
export const COMMANDS_LIMIT_SHARE = 0.85;

/** How long an agent may take to answer anything at all after processes that it had started were ended. */
export const PROBE_MS = 2_000;

/** Calls of one prompt that are mirrored. An agent that makes more is going round in circles. */
export const CALLS_MAX = 4_096;

/** Input and result of a mirrored call. Half of what the log takes: a call may have both at once. */
export const CALL_CHARS_MAX = 256 * 1024;

/** What is told of a call while it goes on. */
export const PROGRESS_CHARS_MAX = 2_000;

/** The name of a call, and of an agent's own words in an error. */
export const NAME_CHARS_MAX = 200;
export const WORDS_CHARS_MAX = 1_000;

/** The last words of an agent that has ended, in the error that says so. */
export const LAST_WORDS_BYTES_MAX = 2_000;

/** What was said so far, for an agent that remembers nothing of it. The end of it, if it is longer. */
export const TRANSCRIPT_CHARS_MAX = 200_000;

/** Sessions whose settings and last updates are kept while no client has them open. */
export const SESSIONS_KEPT_MAX = 1_024;

/** The name an agent gives to a session of its own. */
export const SESSION_ID_CHARS_MAX = 512;

/** Nesting of JSON that the log takes, with room for what we put around it. */
export const DEPTH_MAX = 56;
