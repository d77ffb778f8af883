// Every limit of this folder, each with its reason. Limits that are checked before anything is recorded are in the
// core, where the engine finds them too.

/** How long a tree may take to clean up after SIGTERM. The default; the host can configure it. */
export const GRACE_MS = 1_500;

/** The maximum grace: a cancel that takes longer is not one. */
export const GRACE_MS_MAX = 30_000;

/**
 * A process that exists this long after SIGKILL is reported as escaped. Until then it is dying: the kernel may take
 * seconds to free the memory of a large process, and a loaded machine longer to run our checks.
 */
export const ESCAPED_AFTER_MS = 10_000;

/** How long the self-test and the cleanup at start wait for a kill. Belay's own trees are small. */
export const FORCE_WAIT_MS = 500;

/** The maximum pause between two scans that find the same processes again. */
export const SCAN_PAUSE_MS_MAX = 250;

/** How long the pipes may stay open once the command has ended, even if a descendant holds them. */
export const EXIT_DRAIN_MS = 250;

/** The pause between two empty scans: a child caught between fork and exec has a readable environment by then. */
export const SCAN_PAUSE_MS = 25;

/** The pause between a round of kills and the next scan: a killed process needs a moment to be gone. */
export const SCAN_AGAIN_MS = 5;

/** How many scans in a row must be empty. A single one may miss a process between fork and exec. */
export const EMPTY_SCANS = 2;

/**
 * After this many rounds that each found new processes it is a storm: new processes are frozen first, and killed
 * together.
 */
export const STORM_ROUNDS = 3;

/** How long the sweep at start may take, for everything that earlier servers have left. */
export const SWEEP_MS_MAX = 5_000;

/** Entries of /proc read at once. This takes a millisecond or two; the event loop turns between slices. */
export const SCAN_SLICE = 32;

/** How often a scan looks for processes that were born during it. Later ones are found by the next scan. */
export const NEWBORN_ROUNDS = 8;

/** How many births during one scan are read one by one. More is a storm, and the next scan lists it. */
export const NEWBORN_MAX = 1_024;

/** How often a machine without resources for commands is reported to the operator. */
export const SHORTAGE_NOTICE_MS = 60_000;

/** A scan that reads no process for this long is stuck on one. A process is read in microseconds. */
export const STALL_MS_MAX = 1_000;

/** The maximum of threads that are stuck on a process. Each costs some megabytes until its process can be read. */
export const STUCK_THREADS_MAX = 4;

/**
 * How many processes of a tree are inspected at once while it ends. Beside fork storms each takes milliseconds, in the
 * thread that receives stops. A command that leaves more is a storm: it gets its grace without inspection.
 */
export const LEFTOVERS_MAX = 16;

/** How many descendants are looked up one by one. More is a storm, which is handled by scans. */
export const DESCENDANTS_MAX = 4_096;

/** The whole environment of a child. With the arguments it stays below the two megabytes of a usual machine. */
export const ENVIRONMENT_BYTES_MAX = 512 * 1024;

/** Variables of a child. A larger number is a programming error. */
export const ENVIRONMENT_NAMES_MAX = 1_024;

/** The name of one variable. */
export const ENVIRONMENT_NAME_CHARS_MAX = 256;

/** The maximum nesting of Belay in Belay. A deeper one is a loop. */
export const COOKIES_MAX = 8;

/** The length of a cookie, with the id of its process. */
export const COOKIE_CHARS_MAX = 256;

/** A command as displayed, on one line. */
export const DESCRIPTION_CHARS_MAX = 200;

/** The default maximum of processes and threads of one tree: enough for a build, and too few for a fork bomb. */
export const PROCESSES_MAX_DEFAULT = 512;

/** The kernel's minimum of pid_max for a namespace: it reserves the first 300. */
export const PROCESSES_MIN = 301;

/** Output kept on disk, per stream. Further bytes are counted, and only the last are kept. */
export const OUTPUT_BYTES_MAX_DEFAULT = 64 * 1024 * 1024;

/** One file of the ledger. Belay's own have less than 2 KiB. */
export const LEDGER_FILE_BYTES_MAX = 16 * 1024;

/** Files of the ledger that are read in one start. The rest is counted, and left to the next start. */
export const LEDGER_FILES_MAX = 10_000;

/** The niceness of commands: at 10 they get about a tenth of the server's share of the processor. */
export const COMMAND_NICENESS = 10;
