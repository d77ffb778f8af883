// What a mechanism of containment is: how a command becomes something that can be ended as a whole, and how that whole
// is then held. Types only.
//
// Every mechanism starts a leader, a small program of ours, which starts the command behind a gate (`gate.ts`): the
// command begins only after its tree is held and written down. So there is no moment in which a crash of the server
// leaves a command behind that nobody knows of.
import type { ProcessId } from "../../core/model/ids.ts";
import type { Mechanism, ProcessLimits, Profile, Tier } from "../../ports/spawner.ts";
import type { Identity } from "../tree/proc.ts";

/** A request that was checked: everything in it exists and may be used. */
export interface LaunchPlan {
  readonly id: ProcessId;
  readonly cookie: string;
  /** The program is a path. With a terminal, it is the one that makes it. */
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  /** A real path. */
  readonly cwd: string;
  /** What it may write to in the profile `workspace`. A real path. */
  readonly workspace: string;
  readonly profile: Profile;
  readonly limits: ProcessLimits & { readonly processesMax: number };
  readonly terminal: boolean;
  /** A file descriptor that the command gets besides the ordinary ones. In self-tests only. */
  readonly tether?: number;
}

/** What is really started in place of a command. */
export interface Wrapped {
  readonly file: string;
  readonly args: readonly string[];
  /** What it reads from FILTER_FD as it starts. */
  readonly filter?: Buffer;
  /** The directory of its control group, if it has one. For the ledger. */
  readonly cgroup?: string;
  /** Makes what it needs. Called once, after the intent is written down. */
  readonly prepare?: () => void;
  /** Takes that back. Called once, when nothing of the tree is left or nothing has come of it. Does not throw. */
  readonly release?: () => void;
}

/** The leader, as we have started it. */
export interface Leader {
  readonly identity: Identity;
  /** By the handle of a child we have not reaped: nobody else can have its pid. */
  kill(signal: NodeJS.Signals): void;
  /** How it ended, once it has. */
  readonly exit: { readonly code: number | null; readonly signal: string | null } | undefined;
  /** Whether nobody holds the liveness pipe any more. Everybody of the tree does who has not closed it. */
  readonly released: boolean;
  /** To its control pipe. A leader that is gone does not hear it. */
  tell(text: string): void;
}

export interface Leftover {
  readonly pid: number;
  /** Whether the polite signal has reached it. Whoever was not asked needs no time to answer. */
  readonly asked: boolean;
}

export interface Verified {
  /** How many had to be ended one by one. Zero where the kernel does it. */
  readonly killed: number;
  /** Who is still there, by pid. */
  readonly left: readonly number[];
  /** What held the tree has died before its time: whether a process is left is not known, and reported as such. */
  readonly unverified?: true;
}

/** A tree, held. */
export interface HeldTree {
  /** Of the command, as this machine counts. */
  readonly pid: number;
  /** What proves, in a later life, that the pid is still this tree's. */
  readonly identity: Identity;
  /** Politely, to the command and its group, in this tick. Also wakes whoever is stopped, or they could not answer. */
  ask(): void;
  /** Ends all of it, in this tick: nothing is looked up that could take time. */
  force(): void;
  /** Where `left` tells of the past: looks again. May reject. */
  look?(): Promise<void>;
  /** Others of the tree, besides the leader and the command, at most `max`. As far as can be told at once. */
  left(max?: number): readonly Leftover[];
  /** Everything of the tree but the command and what is Belay's own, where `left` does not list all. May reject. */
  members?(): Promise<readonly Identity[]>;
  /** After `force`: answers as soon as nobody is left, at the latest after `waitMs`. `wakes` say when to look. */
  verify(waitMs: number, wakes: readonly Promise<unknown>[]): Promise<Verified>;
}

export interface Containment {
  readonly mechanism: Mechanism;
  readonly tier: Tier;
  readonly profiles: readonly Profile[];
  /** Throws a ControlError if this plan is not one for it. */
  wrap(plan: LaunchPlan): Wrapped;
  /** Called when the leader has said that the command waits at its gate. Throws if the tree is not there. */
  hold(leader: Leader, plan: LaunchPlan): HeldTree;
  /** Once, when no tree is left. */
  close?(): void;
}
