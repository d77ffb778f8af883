// Every bound of this folder, each with its reason. A limit is a decision. What is checked before anything is recorded
// has its bounds in the core, where the engine finds them too.

/** How long a tree may take to clean up after SIGTERM, unless the host says otherwise. */
export const GRACE_MS = 1_500;

/** The longest grace anybody may ask for: a cancel that takes longer is not one. */
export const GRACE_MS_MAX = 30_000;

/**
 * A process that exists this long after SIGKILL is reported as escaped. Until then it is dying: the kernel may take
 * seconds to free the memory of a large process, and a loaded machine longer to run our checks.
 */
export const ESCAPED_AFTER_MS = 10_000;

/** How long the self-test and the cleanup at start wait for a kill. Trees of their own are small. */
export const FORCE_WAIT_MS = 500;

/** The longest pause between two scans that find the same processes again. */
export const SCAN_PAUSE_MS_MAX = 250;

/** How long the pipes may stay open once the command has ended. A descendant that holds them longer delays nobody. */
export const EXIT_DRAIN_MS = 250;

/** Between two scans that found nobody: a child caught between fork and exec has a readable environment by then. */
export const SCAN_PAUSE_MS = 25;

/** Between a round of killing and the next scan: a killed process needs a moment to be gone. */
export const SCAN_AGAIN_MS = 5;

/** So many scans in a row must find nobody. One alone may have looked while somebody was between fork and exec. */
export const EMPTY_SCANS = 2;

/** After so many rounds that each met newcomers it is a storm: newcomers are frozen first, and killed together. */
export const STORM_ROUNDS = 3;

/** How long the sweep at start may take, for everything that an earlier server has left. */
export const SWEEP_MS_MAX = 5_000;

/** Entries of /proc read at once. A millisecond or two; between two such slices the event loop turns. */
export const SCAN_SLICE = 32;

/** How often a scan looks for those who were born during it. Whoever is faster is met by the next scan. */
export const NEWBORN_ROUNDS = 8;

/** So many births during one scan are looked at one by one. More is a storm, and the next scan lists it. */
export const NEWBORN_MAX = 1_024;

/** How often a machine without room for commands is reported to the operator. */
export const SHORTAGE_NOTICE_MS = 60_000;

/** A look that reads no process for this long is stuck on one. A process is read in microseconds. */
export const STALL_MS_MAX = 1_000;

/** Threads that are stuck on a process, at once. Each costs some megabytes until its process can be read. */
export const STUCK_THREADS_MAX = 4;

/**
 * So many processes of a tree are looked at at once while it ends. Beside fork storms each look takes milliseconds, in
 * the thread that receives stops. A command that leaves more is a storm: what was asked of it has its time, unseen.
 */
export const LEFTOVERS_MAX = 16;

/** How many descendants are looked up one by one. More is a storm, and a storm is met by scanning. */
export const DESCENDANTS_MAX = 4_096;

/** The whole environment of a child. With the arguments it stays below the two megabytes of a usual machine. */
export const ENVIRONMENT_BYTES_MAX = 512 * 1024;

/** Variables of a child. More is a program that mistakes the environment for a file. */
export const ENVIRONMENT_NAMES_MAX = 1_024;

/** The name of one variable. */
export const ENVIRONMENT_NAME_CHARS_MAX = 256;

/** A Belay started by a Belay started by a Belay: whoever needs more than this has a loop. */
export const COOKIES_MAX = 8;

/** The random part of a cookie, and the cookie with its process's id. */
export const COOKIE_CHARS_MAX = 256;

/** A command as it is shown to people, on one line. */
export const DESCRIPTION_CHARS_MAX = 200;

/** Processes and threads of one tree, unless somebody says otherwise: enough for a build, and no fork bomb's worth. */
export const PROCESSES_MAX_DEFAULT = 512;

/** The kernel takes no lower pid_max for a namespace: it keeps the first 300 for itself. */
export const PROCESSES_MIN = 301;

/** Output kept on disk, per stream. What comes after is counted, and only its end is kept. */
export const OUTPUT_BYTES_MAX_DEFAULT = 64 * 1024 * 1024;

/** One file of the ledger. Ours have less than 2 KiB; anything larger is not ours. */
export const LEDGER_FILE_BYTES_MAX = 16 * 1024;

/** Files of the ledger that are looked at in one start. The rest is left to the next, and counted. */
export const LEDGER_FILES_MAX = 10_000;

/** How much of its turn a command yields to the server: at 10 it gets about a tenth of what the server gets. */
export const COMMAND_NICENESS = 10;
