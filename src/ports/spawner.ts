// The socket for operating-system processes: what a tool asks for, and what the engine asks of whoever starts and ends
// them. Types only.
import type { CancelReceipt, GivenReason, Outcome } from "../core/model/cancel.ts";
import type { Exit, Feedback, OutputNote } from "../core/model/event.ts";
import type { CallId, ProcessId, SessionId } from "../core/model/ids.ts";

/** What a turn can do with processes: they are the session's, and go on after it. */
export type TurnProcesses = Pick<CallProcesses, "start" | "get" | "list">;

/** What a tool can do with processes. */
export interface CallProcesses {
  /**
   * Runs a command and waits until its whole tree is gone. It ends with the call: if the call is stopped it rejects,
   * once the tree is dead, and what was said so far is kept. If only the process was stopped the outcome says so.
   * Rejects with a ControlError if it could not be started.
   */
  run(command: CommandLine, options?: RunOptions): Promise<CommandResult>;
  /** Starts a command in the background: it lives as long as the session, and reports back when it ends by itself. */
  start(command: CommandLine, options?: StartOptions): Promise<ProcessHandle>;
  /** Any process of this session, also one that has ended. */
  get(id: string): Promise<ProcessHandle>;
  /** Those that are going on in this session. */
  list(): Promise<readonly ProcessInfo[]>;
}

export interface ProcessOptions extends Omit<SpawnRequest, "id" | "sessionId" | "command" | "workspace" | "signal"> {
  /** Then it is stopped, with the limit as the reason. */
  readonly timeoutMs?: number;
}

export interface StartOptions extends ProcessOptions {
  /** What becomes of its result. Default `next-turn`. */
  readonly feedback?: Feedback;
  /** It is no work of the session but carries it out: a cancel of the session leaves it, only its end ends it. */
  readonly lasting?: true;
}

export interface RunOptions extends Omit<StartOptions, "lasting"> {
  /** Still going on after this long, it is moved to the background and not waited for any longer. */
  readonly backgroundAfterMs?: number;
}

export type CommandResult =
  | ({ readonly kind: "ended" } & ProcessResult)
  /** It took too long to be waited for, and goes on in the background. */
  | { readonly kind: "background"; readonly process: ProcessHandle };

/** How a process ended. */
export interface ProcessResult {
  readonly processId: ProcessId;
  /** `completed`: by itself, whatever its exit code. */
  readonly outcome: Outcome;
  readonly exit?: Exit;
  readonly durationMs?: number;
  readonly output?: OutputNote;
  /** Those of its tree that outlived everything, by pid. */
  readonly escaped?: readonly number[];
}

export interface ProcessInfo {
  readonly id: ProcessId;
  readonly owner: CallId | SessionId;
  readonly title: string;
  readonly phase: "running" | "stopping";
  readonly feedback: Feedback;
  /** The rest is known where it runs. */
  readonly pid?: number;
  readonly tier?: Tier;
  readonly mechanism?: Mechanism;
  readonly profile?: Profile;
  readonly startedAt?: number;
  readonly bytes?: number;
}

/** A process as whoever started it, or found it, holds it. */
export interface ProcessHandle {
  readonly id: ProcessId;
  readonly sessionId: SessionId;
  /** Undefined once it has ended, and where another worker has it. */
  readonly info: ProcessInfo | undefined;
  /** Resolves when its whole tree is gone and that is recorded. Undefined: `limitMs` came first, and it goes on. */
  wait(options?: { readonly limitMs?: number; readonly signal?: AbortSignal }): Promise<ProcessResult | undefined>;
  /** Stops its whole tree. What it belongs to goes on. */
  cancel(reason?: GivenReason): Promise<CancelReceipt>;
  write(data: string | Uint8Array): Promise<void>;
  endInput(): void;
  resize(size: { readonly columns: number; readonly rows: number }): Promise<void>;
  /** The processes of its tree. Undefined: they cannot be listed, or it runs in another worker or has ended. */
  readonly tree?: ProcessTree | undefined;
  /** What it has said: now, or to the end. Undefined: nothing is kept. */
  output(): Promise<OutputFile | undefined>;
  /** A page of that. */
  read(options?: OutputPageOptions): Promise<OutputPage | undefined>;
  /** What it says, as it says it, from `offset` on, until it has ended. */
  follow(options?: OutputPageOptions & { readonly signal?: AbortSignal }): AsyncGenerator<OutputPage, void>;
}

/**
 * How surely a tree dies, best first.
 * `namespace`: a PID namespace; the kernel ends all of it with its first process.
 * `cgroup`: a delegated control group; the kernel ends all of it on one write.
 * `anchor`: a small process that inherits every orphan of the tree, and ends them one by one.
 * `group`: a process group, a mark in the environment, and a watchdog. A child that sheds all three escapes.
 */
export type Tier = "namespace" | "cgroup" | "anchor" | "group";

/** What does it: two programs can make a namespace. */
export type Mechanism = "bubblewrap" | "unshare" | "cgroup" | "anchor" | "group";

/** What a process may see and touch. `contain`: its own process tree only. `workspace`: also only its own files. */
export type Profile = "none" | "contain" | "workspace";

/** The processes that one command has started, listed and ended selectively. The command itself is not a member. */
export interface ProcessTree {
  /** The processes that run now. Rejects if that cannot be determined. */
  members(): Promise<readonly TreeMember[]>;
  /** Ends every member that is not in `kept`, and verifies it: SIGTERM, then SIGKILL after `graceMs`. Never rejects. */
  endOthers(kept: readonly TreeMember[], limits: TreeEndLimits): Promise<TreeEnd>;
}

/** One process of a tree. The start time tells it from a later process with the same pid. */
export interface TreeMember {
  readonly pid: number;
  readonly startTime: number;
  /** Its command line, shortened. Empty where it cannot be read. */
  readonly command: string;
}

export interface TreeEndLimits {
  readonly graceMs: number;
  /** When the verification is given up. */
  readonly limitMs: number;
}

export interface TreeEnd {
  readonly ended: readonly TreeMember[];
  /** Processes that are still there. */
  readonly left: readonly TreeMember[];
  /** False: it could not be determined whether a process is left. */
  readonly sure: boolean;
}

/** Part of a tree that runs already, as a separate process: everything but `kept`. Nothing is started. */
export interface PartOfTree {
  readonly process: ProcessId;
  readonly kept: readonly TreeMember[];
}

/** An argument list goes to the program as it is; a text goes to `sh -c`, byte for byte. */
export type CommandLine = readonly [string, ...string[]] | string;

export type Inherit = "listed" | "all" | Readonly<Record<string, string | undefined>>;

export interface ProcessLimits {
  /** Processes and threads of the tree at once, where the tier can count them. */
  readonly processesMax?: number;
  /** Bytes of memory one process may hold. */
  readonly memoryBytesMax?: number;
  /** Bytes of one file it may write. */
  readonly fileBytesMax?: number;
  /** Seconds of processor time one process may use. */
  readonly cpuSecondsMax?: number;
  /** Bytes of output kept on disk, per stream. What comes after is counted, and only its end is kept. */
  readonly outputBytesMax?: number;
}

export interface SpawnRequest {
  readonly id: ProcessId;
  readonly sessionId: SessionId;
  readonly command: CommandLine;
  /** The directory its session works in, a real path: its workspace instead of the spawner's own. */
  readonly workspace?: string;
  /** Absolute, or relative to the workspace. Default the workspace. */
  readonly cwd?: string;
  /** On top of what every process gets. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * `listed` (default): of this program's environment only what every process gets. `all`: everything but what is
   * Belay's own, for a program of the user's that needs the user's keys; or, in its place, everything of another one.
   * Such a program is not told to ask nobody.
   */
  readonly inherit?: Inherit;
  readonly profile?: Profile;
  /** `closed` (default): reading ends at once. `open`: it can be written to. */
  readonly stdin?: "closed" | "open";
  /** Hears every piece of stdout as it comes, whatever is kept of it. Must not throw. */
  readonly hear?: (piece: Uint8Array) => void;
  /** Asks for a terminal of this size instead of pipes; stdout and stderr are then one stream. */
  readonly terminal?: { readonly columns: number; readonly rows: number };
  readonly limits?: ProcessLimits;
  /**
   * How long it may take to clean up after SIGTERM when it is stopped by itself. Stopped together with its call or
   * session, it has the shorter of this and their grace period. Default the spawner's.
   */
  readonly graceMs?: number;
  /** Starts nothing: the child is what a process of this spawner has started. `command` is what people see. */
  readonly within?: PartOfTree;
  /** Aborted before the child exists, nothing is started, and the spawn is refused as `not_started`. */
  readonly signal?: AbortSignal;
}

export interface Spawner {
  readonly tier: Tier;
  readonly mechanism: Mechanism;
  /**
   * Starts a tree. Rejects with a ControlError (`invalid`, `not_started`, `uncontained`) if it cannot, and then nothing
   * of it is left.
   */
  spawn(request: SpawnRequest): Promise<Child>;
  /** The output of a process that has ended, also in an earlier life. Undefined: none is kept. */
  output(id: ProcessId): Promise<OutputFile | undefined>;
  /** Removes the output that is kept of processes that have ended. Default: it is kept. */
  discard?(ids: readonly ProcessId[]): Promise<void>;
  /** Ends every tree that is left, and waits for it. */
  close(): Promise<void>;
}

/** A tree that is going on. */
export interface Child {
  /** As this machine counts, also for a tree with a namespace of its own. */
  readonly pid: number;
  readonly tier: Tier;
  readonly mechanism: Mechanism;
  readonly profile: Profile;
  /** Wall clock, ms. */
  readonly startedAt: number;
  readonly output: Output;
  readonly tree?: ProcessTree | undefined;
  /** Resolves when the whole tree is gone and its output is complete, or when it has escaped. Never rejects. */
  readonly ended: Promise<ChildEnd>;
  /**
   * Sends SIGTERM in this very tick, and SIGKILL after the shorter of `graceMs` and its own grace period; with 0, at
   * once. Never throws. Again with a shorter time it is hurried, otherwise nothing changes.
   */
  stop(graceMs?: number): void;
  /** Resolves when the child's pipe has taken it in. Rejects with a ControlError if stdin has ended or is closed. */
  write(data: string | Uint8Array): Promise<void>;
  endInput(): void;
  /** Rejects with a ControlError if no terminal was asked for. */
  resize(size: { readonly columns: number; readonly rows: number }): Promise<void>;
}

export interface ChildEnd {
  /** The exit code of the command, or the signal that ended it, by name. */
  readonly code: number | undefined;
  readonly signal: string | undefined;
  /** From the spawn to the end of the command, on a clock that does not jump. */
  readonly durationMs: number;
  /** Whether a signal of ours went out before the command had ended. */
  readonly stopped: boolean;
  /** What was sent, in order. */
  readonly signals: readonly string[];
  /** How many of the tree were still there when the command had ended, and were ended with it. Where it can be told. */
  readonly left: number;
  /** Processes out of reach, by pid: proven to be, or alive a stated time after SIGKILL. Somebody must look. */
  readonly escaped: readonly number[];
}

export type Stream = "stdout" | "stderr" | "all";

export interface OutputCounts {
  /** What the child has written, exactly, kept or not. `all` is the sum. */
  readonly bytes: Readonly<Record<Stream, number>>;
  /** What of it is on disk. */
  readonly kept: Readonly<Record<Stream, number>>;
  /** Line ends seen in `all`. */
  readonly lines: number;
}

/** A piece of output, cut on a character boundary. */
export interface OutputPage {
  readonly stream: Stream;
  /** Where it begins and ends, in bytes of what the child has written. */
  readonly from: number;
  readonly to: number;
  /** As text: what is no UTF-8 is shown as U+FFFD. Escape sequences are as they came. */
  readonly text: string;
  /** Bytes before `from` that were asked for and are not kept. */
  readonly missing: number;
  /** Nothing comes after it: the child has ended and this is the last of it. */
  readonly end: boolean;
}

export interface OutputPageOptions {
  /** Default `all`. */
  readonly stream?: Stream;
  /** Default 0. */
  readonly offset?: number;
  /** Default 64 KiB, at most 1 MiB. */
  readonly bytesMax?: number;
  /** As a person would read it: without escape sequences and control characters. */
  readonly plain?: boolean;
}

export interface OutputFile {
  readonly counts: OutputCounts;
  /** Where the files are, for people. */
  readonly dir: string;
  read(options?: OutputPageOptions): Promise<OutputPage>;
  /** The first and last of what was said on a stream: whole if it fits, else with a count of what is left out. */
  excerpt(options?: Omit<OutputPageOptions, "offset">): Excerpt;
}

export interface Excerpt {
  readonly head: string;
  /** Empty if all of it is in `head`. */
  readonly tail: string;
  /** Bytes between the two that are left out. */
  readonly omitted: number;
}

export interface Output extends OutputFile {
  /** When it last said something; the start, if it never did. On the clock that does not jump. */
  readonly lastAt: number;
  /** Pages from `offset` on, as they come, until the child has ended. A reader that is slow holds up nobody. */
  follow(options?: OutputPageOptions & { readonly signal?: AbortSignal }): AsyncGenerator<OutputPage, void>;
}
