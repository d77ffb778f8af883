// The port for operating-system processes: what tools can do with them, and what the engine requires of a spawner.
// Types only.
import type { CancelReceipt, GivenReason, Outcome } from "../core/model/cancel.ts";
import type { Exit, Feedback, OutputNote } from "../core/model/event.ts";
import type { CallId, ProcessId, SessionId } from "../core/model/ids.ts";

/** The processes that a turn can start. They belong to the session and outlive the turn. */
export type TurnProcesses = Pick<CallProcesses, "start" | "get" | "list">;

/** What a tool can do with processes. */
export interface CallProcesses {
  /**
   * Runs a command and waits until its whole process tree has ended. It ends with the call: if the call is stopped,
   * this rejects once the tree is dead, and the output so far is kept. If only the process was stopped, the outcome
   * reports it. Rejects with a ControlError if it could not be started.
   */
  run(command: CommandLine, options?: RunOptions): Promise<CommandResult>;
  /**
   * Starts a command in the background. It ends with the session at the latest, and reports its result when it ends.
   */
  start(command: CommandLine, options?: StartOptions): Promise<ProcessHandle>;
  /** Any process of this session, even one that has ended. */
  get(id: string): Promise<ProcessHandle>;
  /** The live processes of this session. */
  list(): Promise<readonly ProcessInfo[]>;
}

export interface ProcessOptions extends Omit<SpawnRequest, "id" | "sessionId" | "command" | "workspace" | "signal"> {
  /** The process is stopped after this time, with the limit as the reason. */
  readonly timeoutMs?: number;
}

export interface StartOptions extends ProcessOptions {
  /** What happens to its result. Default `next-turn`. */
  readonly feedback?: Feedback;
  /** Infrastructure of the session, not its work: only the end of the session stops it, a cancel does not. */
  readonly lasting?: true;
}

export interface RunOptions extends Omit<StartOptions, "lasting"> {
  /** After this time the process is moved to the background, and the call no longer waits for it. */
  readonly backgroundAfterMs?: number;
}

export type CommandResult =
  | ({ readonly kind: "ended" } & ProcessResult)
  /** It was moved to the background, and keeps running. */
  | { readonly kind: "background"; readonly process: ProcessHandle };

/** How a process ended. */
export interface ProcessResult {
  readonly processId: ProcessId;
  /** `completed`: it ended by itself, whatever its exit code. */
  readonly outcome: Outcome;
  readonly exit?: Exit;
  readonly durationMs?: number;
  readonly output?: OutputNote;
  /** Pids of its tree that survived the whole stop ladder. */
  readonly escaped?: readonly number[];
}

export interface ProcessInfo {
  readonly id: ProcessId;
  readonly owner: CallId | SessionId;
  readonly title: string;
  readonly phase: "running" | "stopping";
  readonly feedback: Feedback;
  /** The fields from here on are known only to the worker that runs it. */
  readonly pid?: number;
  readonly tier?: Tier;
  readonly mechanism?: Mechanism;
  readonly profile?: Profile;
  readonly startedAt?: number;
  readonly bytes?: number;
}

/** A handle on a process, for the caller that started or looked it up. */
export interface ProcessHandle {
  readonly id: ProcessId;
  readonly sessionId: SessionId;
  /** Undefined once it has ended, and if another worker runs it. */
  readonly info: ProcessInfo | undefined;
  /**
   * Resolves when its whole tree has ended and that is recorded. Undefined: `limitMs` came first, and it keeps running.
   */
  wait(options?: { readonly limitMs?: number; readonly signal?: AbortSignal }): Promise<ProcessResult | undefined>;
  /** Stops its whole tree. Its call or session continues. */
  cancel(reason?: GivenReason): Promise<CancelReceipt>;
  write(data: string | Uint8Array): Promise<void>;
  endInput(): void;
  resize(size: { readonly columns: number; readonly rows: number }): Promise<void>;
  /** The processes of its tree. Undefined: they cannot be listed, or it runs in another worker or has ended. */
  readonly tree?: ProcessTree | undefined;
  /** Its output, so far or complete. Undefined: none is kept. */
  output(): Promise<OutputFile | undefined>;
  /** A page of its output. */
  read(options?: OutputPageOptions): Promise<OutputPage | undefined>;
  /** Its output as it is written, starting at `offset`, until it has ended. */
  follow(options?: OutputPageOptions & { readonly signal?: AbortSignal }): AsyncGenerator<OutputPage, void>;
}

/**
 * How reliably a process tree can be killed, best first.
 * `namespace`: a PID namespace; the kernel ends all of it with its first process.
 * `cgroup`: a delegated control group; the kernel ends all of it on one write.
 * `anchor`: a small process that inherits every orphan of the tree, and ends them one by one.
 * `group`: a process group, a mark in the environment, and a watchdog. A child that sheds all three escapes.
 */
export type Tier = "namespace" | "cgroup" | "anchor" | "group";

/** The implementation of a tier: two programs can make a namespace. */
export type Mechanism = "bubblewrap" | "unshare" | "cgroup" | "anchor" | "group";

/** What a process can access. `contain`: its own process tree only. `workspace`: in addition, only its own files. */
export type Profile = "none" | "contain" | "workspace";

/** The processes that a command has started, listed and ended selectively. The command itself is not a member. */
export interface ProcessTree {
  /** The processes that run now. Rejects if that cannot be determined. */
  members(): Promise<readonly TreeMember[]>;
  /** Ends every member that is not in `kept`, and verifies it: SIGTERM, then SIGKILL after `graceMs`. Never rejects. */
  endOthers(kept: readonly TreeMember[], limits: TreeEndLimits): Promise<TreeEnd>;
}

/** One process of a tree. The start time distinguishes it from a later process with the same pid. */
export interface TreeMember {
  readonly pid: number;
  readonly startTime: number;
  /** Its command line, shortened. Empty if it cannot be read. */
  readonly command: string;
}

export interface TreeEndLimits {
  readonly graceMs: number;
  /** When the verification gives up. */
  readonly limitMs: number;
}

export interface TreeEnd {
  readonly ended: readonly TreeMember[];
  /** Processes that still exist. */
  readonly left: readonly TreeMember[];
  /** False: it could not be determined whether a process is left. */
  readonly sure: boolean;
}

/** Makes part of a running tree a separate process: everything but `kept`. Nothing is started. */
export interface PartOfTree {
  readonly process: ProcessId;
  readonly kept: readonly TreeMember[];
}

/** An argument list is executed unchanged; a string is passed to `sh -c`, byte for byte. */
export type CommandLine = readonly [string, ...string[]] | string;

export type Inherit = "listed" | "all" | Readonly<Record<string, string | undefined>>;

export interface ProcessLimits {
  /** Maximum number of processes and threads of the tree, if the tier can count them. */
  readonly processesMax?: number;
  /** Maximum memory of one process, in bytes. */
  readonly memoryBytesMax?: number;
  /** Maximum size of one file it writes, in bytes. */
  readonly fileBytesMax?: number;
  /** Maximum processor time of one process, in seconds. */
  readonly cpuSecondsMax?: number;
  /** Bytes of output kept on disk, per stream. Further output is counted, and only its end is kept. */
  readonly outputBytesMax?: number;
}

export interface SpawnRequest {
  readonly id: ProcessId;
  readonly sessionId: SessionId;
  readonly command: CommandLine;
  /** The working directory of its session, a real path. It replaces the spawner's workspace. */
  readonly workspace?: string;
  /** Absolute, or relative to the workspace. Default the workspace. */
  readonly cwd?: string;
  /** Added to the environment that every process gets. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * `listed` (default): only the variables that every process gets. `all`: the whole environment except Belay's own
   * variables, for a user's program that needs the user's keys. An object: that environment instead. The last two do
   * not set the variables that disable prompts.
   */
  readonly inherit?: Inherit;
  readonly profile?: Profile;
  /** `closed` (default): stdin is at its end. `open`: it can be written to. */
  readonly stdin?: "closed" | "open";
  /** Called with every piece of stdout as it arrives, whether or not it is kept. Must not throw. */
  readonly hear?: (piece: Uint8Array) => void;
  /** Requests a terminal of this size instead of pipes; stdout and stderr are then one stream. */
  readonly terminal?: { readonly columns: number; readonly rows: number };
  readonly limits?: ProcessLimits;
  /**
   * How long it may take to clean up after SIGTERM when only it is stopped. When it is stopped with its call or
   * session, the shorter of this and their grace applies. Default the spawner's.
   */
  readonly graceMs?: number;
  /** Starts nothing: the child is part of a tree of this spawner. `command` is only displayed. */
  readonly within?: PartOfTree;
  /** If it aborts before the child exists, nothing is started, and the spawn is refused as `not_started`. */
  readonly signal?: AbortSignal;
}

export interface Spawner {
  readonly tier: Tier;
  readonly mechanism: Mechanism;
  /** Starts a process tree. Rejects with `invalid`, `not_started` or `uncontained`, and then nothing of it is left. */
  spawn(request: SpawnRequest): Promise<Child>;
  /** The output of a process that has ended, even one of an earlier program. Undefined: none is kept. */
  output(id: ProcessId): Promise<OutputFile | undefined>;
  /** Removes the kept output of processes that have ended. Default: it is kept. */
  discard?(ids: readonly ProcessId[]): Promise<void>;
  /** Ends every tree that is left, and waits for it. */
  close(): Promise<void>;
}

/** A live process tree. */
export interface Child {
  /** The pid in this machine's own namespace, even for a tree in a separate one. */
  readonly pid: number;
  readonly tier: Tier;
  readonly mechanism: Mechanism;
  readonly profile: Profile;
  /** Wall clock, ms. */
  readonly startedAt: number;
  readonly output: Output;
  readonly tree?: ProcessTree | undefined;
  /** Resolves when the whole tree has ended and its output is complete, or when it has escaped. Never rejects. */
  readonly ended: Promise<ChildEnd>;
  /**
   * Sends SIGTERM in the tick of the call, and SIGKILL after the shorter of `graceMs` and its own grace; with 0,
   * SIGKILL at once. Never throws. Another call can only shorten the time.
   */
  stop(graceMs?: number): void;
  /** Resolves when the data is in the child's pipe. Rejects with a ControlError if stdin has ended or is closed. */
  write(data: string | Uint8Array): Promise<void>;
  endInput(): void;
  /** Rejects with a ControlError if it has no terminal. */
  resize(size: { readonly columns: number; readonly rows: number }): Promise<void>;
}

export interface ChildEnd {
  /** The exit code of the command, or the name of the signal that ended it. */
  readonly code: number | undefined;
  readonly signal: string | undefined;
  /** From the spawn to the end of the command, on a monotonic clock. */
  readonly durationMs: number;
  /** Whether Belay sent a signal before the command had ended. */
  readonly stopped: boolean;
  /** The signals that were sent, in order. */
  readonly signals: readonly string[];
  /** How many processes of the tree were left when the command ended, and were killed then, if they can be counted. */
  readonly left: number;
  /** Pids out of reach: proven to be, or alive a stated time after SIGKILL. An operator must look at them. */
  readonly escaped: readonly number[];
}

export type Stream = "stdout" | "stderr" | "all";

export interface OutputCounts {
  /** Bytes that the child has written, kept or not. `all` is the sum. */
  readonly bytes: Readonly<Record<Stream, number>>;
  /** Bytes of it on disk. */
  readonly kept: Readonly<Record<Stream, number>>;
  /** Number of line ends in `all`. */
  readonly lines: number;
}

/** A piece of output, cut on a character boundary. */
export interface OutputPage {
  readonly stream: Stream;
  /** Its beginning and end, in bytes of what the child has written. */
  readonly from: number;
  readonly to: number;
  /** As text: invalid UTF-8 is shown as U+FFFD. Escape sequences are unchanged. */
  readonly text: string;
  /** Requested bytes before `from` that are not kept. */
  readonly missing: number;
  /** This is the last page: the child has ended. */
  readonly end: boolean;
}

export interface OutputPageOptions {
  /** Default `all`. */
  readonly stream?: Stream;
  /** Default 0. */
  readonly offset?: number;
  /** Default 64 KiB, at most 1 MiB. */
  readonly bytesMax?: number;
  /** Removes escape sequences and control characters, for people. */
  readonly plain?: boolean;
}

export interface OutputFile {
  readonly counts: OutputCounts;
  /** The directory of the files, for people. */
  readonly dir: string;
  read(options?: OutputPageOptions): Promise<OutputPage>;
  /** The beginning and end of a stream: all of it if it fits, otherwise with the number of omitted bytes. */
  excerpt(options?: Omit<OutputPageOptions, "offset">): Excerpt;
}

export interface Excerpt {
  readonly head: string;
  /** Empty if all of it is in `head`. */
  readonly tail: string;
  /** Bytes omitted between the two. */
  readonly omitted: number;
}

export interface Output extends OutputFile {
  /** When it last wrote output; the start, if it never did. On the monotonic clock. */
  readonly lastAt: number;
  /** Pages starting at `offset`, as they are written, until the child has ended. A slow reader delays no other. */
  follow(options?: OutputPageOptions & { readonly signal?: AbortSignal }): AsyncGenerator<OutputPage, void>;
}
