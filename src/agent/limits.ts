// Every bound of the agent loop and its tools, each with its reason. The engine's are in `core/limits.ts`.

/** Calls of one run that go on at once. More would mostly wait for the disk, or for somebody's rate limit. */
export const PARALLEL_MAX = 8;

/** Calls one answer may ask for. What is asked beyond it is answered with a refusal the model can read. */
export const CALLS_PER_TURN_MAX = 64;

/** Turns of one run, unless the host says otherwise: a person would have looked long before. */
export const TURNS_MAX = 100;

/** The same call with the same result more often than this, within so many turns, is a circle and not diligence. */
export const LOOP_REPEATS_MAX = 5;
export const LOOP_TURNS = 10;

/** How often a request that came to nothing is made, and the first and the longest pause between two attempts. */
export const ATTEMPTS_MAX = 4;
export const RETRY_FIRST_MS = 500;
export const RETRY_LAST_MS = 30_000;

/** Until a provider begins to answer. Longer than its worst queue on a good day, shorter than a person's patience. */
export const FIRST_BYTE_MS = 30_000;

/** Within an answer. Models that think without a word take a minute; two minutes of silence are a dead connection. */
export const SILENT_MS = 120_000;

/** After the answer is complete its connection gets this long to end properly, so that it can be used again. */
export const DRAIN_MS = 1_000;

/** A stream that always has a next part at hand must not keep the stop button from being heard. */
export const PARTS_PER_BREATH = 1_024;

/** Text, thoughts and inputs of one answer. No model writes as much; one that seems to repeats itself for ever. */
export const ANSWER_CHARS_MAX = 4 * 1024 * 1024;

/** A file that a model made and that goes into the log with its answer: half of what the log takes of one answer. */
export const FILE_CHARS_MAX = 512 * 1024;

/** What a token is in English and in code, roughly. For estimates, which are marked as such. */
export const CHARS_PER_TOKEN = 4;

/** What a file in a prompt is counted as: a picture is about a thousand tokens, whatever its bytes. */
export const FILE_CHARS = 4_000;

/** Of one result, when a conversation is summarised: the gist is at its beginning, the rest is paid for in vain. */
export const SUMMARISED_CHARS_MAX = 8_000;

/** Of what a provider says has gone wrong. */
export const TROUBLE_CHARS_MAX = 2_000;

/** Of a process's output, in one result: some four thousand tokens. The rest is in a file, and can be asked for. */
export const OUTPUT_BYTES_TOLD = 16 * 1024;

/** Less of it would be neither a beginning nor an end. */
export const OUTPUT_BYTES_TOLD_MIN = 1_024;

/** What one result may tell of a process's output at the very most, whatever the host or the model asks for. */
export const OUTPUT_BYTES_TOLD_MAX = 64 * 1024;

/** A command that is not over by then goes on in the background: a model that only waits is paid for nothing. */
export const BACKGROUND_AFTER_MS = 60_000;

/** A background process is watched so long before the model is told that it goes on: most mistakes show by then. */
export const START_WATCH_MS = 1_000;

/** How long a model waits for a process, unless it says otherwise, and at most. */
export const PROCESS_WAIT_MS = 60_000;
export const PROCESS_WAIT_MS_MAX = 10 * 60_000;

/** How long a model waits to hear what became of a process it has stopped: the longest grace, and its verification. */
export const PROCESS_STOP_WAIT_MS = 35_000;

/** A command as a model writes it. More belongs into a file; and an approval must still be something one can read. */
export const COMMAND_CHARS_MAX = 16 * 1024;

/** The first and the longest pause between two looks at a command that goes on; each is twice the one before. */
export const COMMAND_NOTE_FIRST_MS = 2_000;
export const COMMAND_NOTE_LAST_MS = 30_000;

/** The end of the output that goes with such a look: a screenful. */
export const COMMAND_NOTE_CHARS = 2 * 1024;

/** Processes that are listed for a model that has named one there is not. */
export const PROCESSES_TOLD = 16;
