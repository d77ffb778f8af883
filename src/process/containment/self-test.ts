// Whether a mechanism really does what it is for, on this machine, now: a hostile tree is started with it and ended,
// and another one is left behind by a server that is killed.
//
// The proof is not the mechanism's own: the hostile process holds a pipe open, and the end of that pipe is its death.
//
// Invariants
// 1. A tree under test is in no ledger, so whoever tests must not be outlived by it, also if the mechanism is none.
//    Everybody in it waits for the end of a pipe, the tether, whose other end nobody but us has: it comes when we are
//    gone, however we died, and then they are gone within milliseconds.
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Readable, Writable } from "node:stream";
import { messageOf } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import { COOKIE_NAME, makeCookie } from "../launch/environment.ts";
import { GO, SHELL } from "../launch/gate.ts";
import { spawnCovered } from "../launch/inherited-descriptors.ts";
import { isForkFailure, isShortage, Status, spawned } from "../launch/start.ts";
import { FORCE_WAIT_MS, PROCESSES_MAX_DEFAULT } from "../limits.ts";
import { until, within } from "../tree/poll-until.ts";
import type { Identity } from "../tree/proc.ts";
import { PROC_PROCESS_TABLE } from "../tree/proc-process-table.ts";
import type { ProcessTable } from "../tree/process-table.ts";
import { send } from "../tree/signal.ts";
import type { Containment, HeldTree, LaunchPlan, Leader } from "./containment.ts";

/** `shortage`: the machine had no room for the test, so it says nothing about the mechanism. */
export type TestResult =
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly why: string; readonly shortage?: true };

/** How long one step may take, on a machine that is very busy. All of it takes a tenth of a second. */
const STEP_MS_MAX = 5_000;

/** What a leader says before it fails is kept, up to this. */
const COMPLAINT_BYTES_MAX = 2_000;

/** Where everybody of a tree finds the tether. Not the input: Node lets go of that when its own child has ended. */
const TETHER_FD = 6;

/**
 * Stands for the server: it is the parent of what it starts, and keeps nothing of it but the tether. When that ends, it
 * takes its group along: also a leader that hangs, and whom nobody else would end.
 */
const SERVER = ['"$@" &', "exec 1>&- 2>&- 3>&- 4>&- 5>&-", `read -r _ <&${TETHER_FD}`, "kill -KILL 0"].join("\n");

/** Leaves its session, its parents and its environment behind. */
const HOSTILE = [
  `daemon='(echo up; read -r _ <&${TETHER_FD}) & exit'`,
  'env -i PATH="$PATH" setsid sh -c "$daemon" 2>/dev/null || env -i PATH="$PATH" sh -c "$daemon"',
  `read -r _ <&${TETHER_FD}`,
].join("\n");

/**
 * The same for whoever cannot see files: it keeps its environment, and nothing else. It is Node, because a platform may
 * hide the environment of its own programs, and starts itself anew in a session of its own.
 */
const MARKED = [
  `daemon='console.log("up"); process.stdin.on("close", () => process.exit()).resume()'`,
  `options='{ detached: true, stdio: [${TETHER_FD}, "inherit", "inherit"] }'`,
  `start='require("node:child_process").spawn(process.execPath, ["-e", process.argv[1]],'`,
  '"$0" -e "$start $options).unref()" "$daemon"',
  `read -r _ <&${TETHER_FD}`,
].join("\n");

export interface Testing {
  readonly clock: Clock;
  readonly workspace: string;
  /** Makes one that nobody else uses: it is closed as a dying server would close it. */
  readonly make: () => Containment | undefined;
  /** Default /proc. */
  readonly processTable?: ProcessTable;
}

/** Never rejects. */
export async function selfTest(testing: Testing): Promise<TestResult> {
  const results = await Promise.all([attempt(testing, "stop"), attempt(testing, "server-killed")]);
  const failed = results.filter((one) => one.kind === "failed");
  return failed.find(({ shortage }) => shortage) ?? failed[0] ?? { kind: "passed" };
}

type Way = "stop" | "server-killed";

async function attempt(testing: Testing, way: Way): Promise<TestResult> {
  let trial: Trial | undefined;
  try {
    const containment = testing.make();
    if (containment === undefined) return failed("what it is made of is missing");
    trial = await Trial.begin(containment, testing, way);
    const up = await within(testing.clock, STEP_MS_MAX, trial.up());
    if (up !== "up") return failed(up ?? "the process to be held did not come up");
    trial.end();
    const gone = await within(testing.clock, STEP_MS_MAX, trial.gone);
    return gone === undefined ? failed(DEED[way]) : { kind: "passed" };
  } catch (error) {
    return failed(messageOf(error), isShortage(error));
  } finally {
    await trial?.clean();
  }
}

const failed = (why: string, shortage = isForkFailure(why)): TestResult => ({
  ...{ kind: "failed", why },
  ...(shortage ? { shortage } : {}),
});

const DEED: Readonly<Record<Way, string>> = {
  stop: "a process that had left its session outlived the kill",
  "server-killed": "a process outlived the server that had started it",
};

interface TrialParts {
  readonly containment: Containment;
  readonly plan: LaunchPlan;
  readonly server: ChildProcess;
  readonly release: (() => void) | undefined;
  readonly processTable: ProcessTable;
  readonly clock: Clock;
  readonly way: Way;
}

/** One tree, started by a shell that stands for the server. */
class Trial {
  /** Resolves when nobody holds the output of the tree any more. */
  readonly gone: Promise<true>;
  readonly #containment: Containment;
  readonly #plan: LaunchPlan;
  readonly #way: Way;
  readonly #processTable: ProcessTable;
  readonly #server: ChildProcess;
  readonly #control: Writable;
  readonly #liveness: Readable;
  readonly #status: Status;
  readonly #release: (() => void) | undefined;
  readonly #clock: Clock;
  #held: HeldTree | undefined;
  #identity: Identity | undefined;
  #said = "";
  #complaint = "";

  /** Rejects if the machine has no room for it. */
  static async begin(containment: Containment, testing: Testing, way: Way): Promise<Trial> {
    const { workspace, clock, processTable: sight = PROC_PROCESS_TABLE } = testing;
    const plan = planOf(workspace, sight);
    const { file, args, prepare, release } = containment.wrap(plan);
    prepare?.();
    const server = spawnCovered(SHELL, ["-c", SERVER, "belay", file, ...args], {
      cwd: workspace,
      env: plan.env,
      detached: true,
      // The last one is the tether. Nothing is ever said on it, and it is let go when all is over.
      stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", "pipe", "pipe"],
    });
    try {
      await spawned(server);
    } catch (error) {
      release?.();
      containment.close?.();
      throw error;
    }
    return new Trial({ containment, plan, server, release, processTable: sight, clock, way });
  }

  private constructor({ containment, plan, server, release, processTable: sight, clock, way }: TrialParts) {
    this.#clock = clock;
    this.#containment = containment;
    this.#way = way;
    this.#processTable = sight;
    this.#plan = plan;
    this.#server = server;
    this.#release = release;
    const stdio: readonly (Readable | Writable | null | undefined)[] = server.stdio;
    const [, stdout, stderr, control, status, liveness] = stdio;
    for (const stream of stdio) stream?.on("error", () => undefined);
    this.#control = control as Writable;
    this.#liveness = liveness as Readable;
    this.#status = new Status(status as Readable);
    this.#liveness.resume();
    stdout?.on("data", (data: Buffer) => {
      this.#said += data.toString("latin1");
    });
    stderr?.on("data", (data: Buffer) => {
      this.#complaint = (this.#complaint + data.toString("utf8")).slice(0, COMPLAINT_BYTES_MAX);
    });
    this.gone = new Promise((resolve) => stdout?.once("close", () => resolve(true)));
  }

  /** Resolves with `up` when the hostile process is there, or with why it will not be. */
  async up(): Promise<string> {
    const first = await Promise.race([this.#status.ready.then(() => "ready"), this.gone]);
    const complaint = `${this.#complaint.trim()} ${this.#status.complaint}`.trim();
    if (first !== "ready") return `it did not start${complaint === "" ? "" : `: ${complaint}`}`;
    await this.#processTable.look?.();
    this.#held = this.#containment.hold(this.#leader(), this.#plan);
    this.#control.write(GO);
    while (!this.#said.includes("up")) {
      const more = new Promise((resolve) => this.#server.stdout?.once("data", resolve));
      if ((await Promise.race([more, this.gone])) === true) return "the process to be held ended by itself";
    }
    return "up";
  }

  end(): void {
    if (this.#way === "stop") {
      this.#held?.force();
      if (this.#containment.tier === "group") void this.#held?.verify(FORCE_WAIT_MS, [this.gone]);
      return;
    }
    // All that the kernel would do if the server were killed, and nothing else.
    this.#server.kill("SIGKILL");
    this.#control.destroy();
    this.#containment.close?.();
  }

  /** Whatever came of it, nothing stays. */
  async clean(): Promise<void> {
    this.#held?.force();
    await this.#held?.verify(FORCE_WAIT_MS, [this.gone]);
    this.#server.kill("SIGKILL");
    for (const stream of this.#server.stdio) stream?.destroy();
    this.#control.destroy();
    this.#liveness.destroy();
    // A leader that ends by itself when its pipe does, as an anchor, is waited for: a test leaves nothing behind.
    const leader = this.#identity;
    const isGone = (): boolean => leader === undefined || !this.#processTable.isStill(leader);
    await until(isGone, { clock: this.#clock, waitMs: FORCE_WAIT_MS });
    this.#release?.();
    this.#containment.close?.();
  }

  #leader(): Leader {
    const processTable = this.#processTable;
    const [pid] = processTable.childrenOf(this.#server.pid ?? 0);
    const identity = pid === undefined ? undefined : processTable.identityOf(pid);
    if (identity === undefined) throw new Error("what holds the process has died");
    this.#identity = identity;
    const liveness = this.#liveness;
    return {
      identity,
      kill: (signal) => {
        send(identity, signal, processTable.means());
      },
      get exit() {
        return processTable.isStill(identity) ? undefined : { code: null, signal: "SIGKILL" };
      },
      get released() {
        return liveness.closed;
      },
      tell: (text) => {
        this.#control.write(text);
      },
    };
  }
}

function planOf(workspace: string, processTable: ProcessTable): LaunchPlan {
  const id = "proc_selftest.1";
  // One of its own each time: a watchdog of the trial before may still be looking for its own.
  const cookie = makeCookie(id, randomBytes(9).toString("base64url"));
  const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  return {
    ...{ id, cookie, cwd: workspace, workspace, profile: "none", terminal: false, tether: TETHER_FD },
    argv: processTable.kind === "ps" ? [SHELL, "-c", MARKED, process.execPath] : [SHELL, "-c", HOSTILE],
    env: { PATH: path, [COOKIE_NAME]: cookie },
    limits: { processesMax: PROCESSES_MAX_DEFAULT },
  };
}
