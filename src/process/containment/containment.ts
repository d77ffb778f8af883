// The contract of a containment mechanism: how it starts a command, and how it holds and ends the resulting tree. Types
// only.
//
// Every mechanism starts a leader, a small program of ours, which starts the command behind a gate (`gate.ts`): the
// command begins only after its tree is held and recorded. So a server that crashes leaves no unknown command behind.
import type { ProcessId } from "../../core/model/ids.ts";
import type { Mechanism, ProcessLimits, Profile, Tier } from "../../ports/spawner.ts";
import type { Identity } from "../tree/proc.ts";

/** A validated request: every path and program in it exists and may be used. */
export interface LaunchPlan {
  readonly id: ProcessId;
  readonly cookie: string;
  /** The program is a path. With a terminal, it is the program that makes the terminal. */
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** A real path. */
  readonly cwd: string;
  /** The directory it may write to in the profile `workspace`. A real path. */
  readonly workspace: string;
  readonly profile: Profile;
  readonly limits: ProcessLimits & { readonly processesMax: number };
  readonly terminal: boolean;
  /** An additional file descriptor for the command. In self-tests only. */
  readonly tether?: number;
}

/** The program that is started in place of the command. */
export interface Wrapped {
  readonly file: string;
  readonly args: readonly string[];
  /** The data to write to FILTER_FD at its start. */
  readonly filter?: Buffer;
  /** The directory of its control group, if it has one. For the ledger. */
  readonly cgroup?: string;
  /** Creates its resources. Called once, after the intent is recorded. */
  readonly prepare?: () => void;
  /** Releases them. Called once, when the tree is gone or its start has failed. Does not throw. */
  readonly release?: () => void;
}

/** The leader, after its start. */
export interface Leader {
  readonly identity: Identity;
  /** Signals by the handle of a child that is not reaped, so its pid cannot be another process's. */
  kill(signal: NodeJS.Signals): void;
  /** Its exit status, once it has one. */
  readonly exit: { readonly code: number | null; readonly signal: string | null } | undefined;
  /** Whether no process holds the liveness pipe. Every process of the tree does, unless it has closed it. */
  readonly released: boolean;
  /** Writes to its control pipe. Has no effect once the leader is gone. */
  write(text: string): void;
}

export interface Leftover {
  readonly pid: number;
  /** Whether the polite signal has reached it. If not, it needs no time to handle it. */
  readonly signalled: boolean;
}

export interface Verified {
  /** How many were ended one by one. Zero where the kernel ends the tree. */
  readonly killed: number;
  /** The pids of processes that still exist. */
  readonly left: readonly number[];
  /** The holder of the tree died early: whether a process is left is unknown, and reported as such. */
  readonly unverified?: true;
}

/** A tree that is held. */
export interface HeldTree {
  /** The pid of the command in our namespace. */
  readonly pid: number;
  /** Proves to a later server that the pid is still this tree's. */
  readonly identity: Identity;
  /**
   * Sends the polite signal to the command and its group, in this tick, and continues stopped processes so they can
   * handle it.
   */
  sendSigterm(): void;
  /** Ends all of it, in this tick, without any slow lookup. */
  force(): void;
  /** Scans again where `left` answers from a cached scan. May reject. */
  refresh?(): Promise<void>;
  /** The processes of the tree besides leader and command, at most `max`, as far as can be read synchronously. */
  left(max?: number): readonly Leftover[];
  /** All processes of the tree except the command and Belay's own, where `left` does not list all. May reject. */
  members?(): Promise<readonly Identity[]>;
  /** Call after `force`. Resolves once no process is left, at the latest after `waitMs`. `wakes` trigger a check. */
  verify(waitMs: number, wakes: readonly Promise<unknown>[]): Promise<Verified>;
}

export interface Containment {
  readonly mechanism: Mechanism;
  readonly tier: Tier;
  readonly profiles: readonly Profile[];
  /** Throws a ControlError if this mechanism cannot run the plan. */
  wrap(plan: LaunchPlan): Wrapped;
  /** Called when the command waits at its gate. Throws if the tree is incomplete. */
  hold(leader: Leader, plan: LaunchPlan): HeldTree;
  /** Called once, when no tree is left. */
  close?(): void;
}
