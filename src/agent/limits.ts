// Limits of the agent loop and its tools, each with its reason. The engine's limits are in `core/limits.ts`.

/** Calls of one run that execute at once. More would mostly wait for the disk or for a provider's rate limit. */
export const PARALLEL_MAX = 8;

/** Calls per answer. Each further call fails with an error that the model can read. */
export const CALLS_PER_TURN_MAX = 64;

/** Turns per run, unless the host sets a budget. A person would have looked at the run long before. */
export const TURNS_MAX = 100;

/** More repetitions than this of one call with one result, within this many turns, count as a loop. */
export const LOOP_REPEATS_MAX = 5;
export const LOOP_TURNS = 10;

/** Attempts per request, and the first and the longest pause between two attempts. */
export const ATTEMPTS_MAX = 4;
export const RETRY_FIRST_MS = 500;
export const RETRY_LAST_MS = 30_000;

/**
 * Time to the first byte of an answer: longer than a provider's worst queue on a normal day, shorter than a user's
 * patience.
 */
export const FIRST_BYTE_MS = 30_000;

/** Idle timeout within an answer. A model may think for a minute; two minutes of silence mean a dead connection. */
export const SILENT_MS = 120_000;

/** After a complete answer, how long its connection may take to end cleanly, so that it can be reused. */
export const DRAIN_MS = 1_000;

/** Stream parts that are read before the loop yields, so that a stream that never pauses cannot delay a stop. */
export const PARTS_PER_YIELD = 1_024;

/**
 * Text, reasoning and tool inputs of one answer. No model writes this much on purpose; one that does repeats itself.
 */
export const ANSWER_CHARS_MAX = 4 * 1024 * 1024;

/** A file made by a model and logged with its answer: half of what the log accepts for one answer. */
export const FILE_CHARS_MAX = 512 * 1024;

/** Characters per token in English and in code, roughly. Used for estimates, which are marked as such. */
export const CHARS_PER_TOKEN = 4;

/** The characters that a file in a prompt counts as: a picture takes about a thousand tokens, whatever its size. */
export const FILE_CHARS = 4_000;

/**
 * Per tool result, when a conversation is summarised. The gist is at the beginning; the rest costs tokens for nothing.
 */
export const SUMMARISED_CHARS_MAX = 8_000;

/** Length of a provider's error message. */
export const PROVIDER_ERROR_CHARS_MAX = 2_000;

/** Output of a process in one result: about four thousand tokens. The rest is in a file that the model can read. */
export const OUTPUT_RESULT_BYTES = 16 * 1024;

/** Less than this shows neither the beginning nor the end of the output. */
export const OUTPUT_RESULT_BYTES_MIN = 1_024;

/** Output of a process in one result at most, whatever the host or the model requests. */
export const OUTPUT_RESULT_BYTES_MAX = 64 * 1024;

/** A command that runs longer continues in the background: a model that only waits costs money for nothing. */
export const BACKGROUND_AFTER_MS = 60_000;

/** How long a new background process is watched before its start is reported: most mistakes show by then. */
export const START_WATCH_MS = 1_000;

/** How long a model waits for a process by default, and at most. */
export const PROCESS_WAIT_MS = 60_000;
export const PROCESS_WAIT_MS_MAX = 10 * 60_000;

/** How long a model waits for a process that it stopped: the longest grace period and its verification. */
export const PROCESS_STOP_WAIT_MS = 35_000;

/** Length of a command. A longer one belongs in a file, and a person must be able to read what they approve. */
export const COMMAND_CHARS_MAX = 16 * 1024;

/**
 * The first and the longest interval between two progress updates of a running command; each is twice the previous one.
 */
export const COMMAND_NOTE_FIRST_MS = 2_000;
export const COMMAND_NOTE_LAST_MS = 30_000;

/** The end of the output in each progress update: about a screenful. */
export const COMMAND_NOTE_CHARS = 2 * 1024;

/** Processes that are listed for a model that has named an unknown one. */
export const PROCESSES_LISTED_MAX = 16;
