// Tests whether a mechanism works on this machine now: it starts a hostile tree and ends it, and leaves another one
// behind with a server that is killed.
//
// The proof does not rely on the mechanism: the hostile process holds a pipe open, and the end of that pipe is its
// death.
//
// Invariants
// 1. A tree under test is in no ledger, so it must not outlive the tester, even if the mechanism fails. Every process
//    in it waits for the end of a pipe, the tether, whose other end only we hold: it ends when we are gone, however we
//    died, and the tree follows within milliseconds.
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

/** `shortage`: the machine lacked resources for the test, so it says nothing about the mechanism. */
export type TestResult =
  | { readonly kind: "passed" }
  | { readonly kind: "failed"; readonly why: string; readonly shortage?: true };

/** The timeout of one step, for a very busy machine. The whole test takes a tenth of a second. */
const STEP_MS_MAX = 5_000;

/** How much of a failing leader's stderr is kept. */
const COMPLAINT_BYTES_MAX = 2_000;

/**
 * The tether's descriptor in every process of a tree. Not stdin: Node closes its end of that when its own child exits.
 */
const TETHER_FD = 6;

/**
 * Simulates the server: it is the parent of the tree and keeps only the tether. When that ends, it kills its group,
 * including a leader that hangs and would otherwise be left.
 */
const SERVER = ['"$@" &', "exec 1>&- 2>&- 3>&- 4>&- 5>&-", `read -r _ <&${TETHER_FD}`, "kill -KILL 0"].join("\n");

/** Leaves its session, its parents and its environment behind. */
const HOSTILE = [
  `daemon='(echo up; read -r _ <&${TETHER_FD}) & exit'`,
  'env -i PATH="$PATH" setsid sh -c "$daemon" 2>/dev/null || env -i PATH="$PATH" sh -c "$daemon"',
  `read -r _ <&${TETHER_FD}`,
].join("\n");

/**
 * The variant where open files cannot be read: it keeps its environment, and nothing else. It is Node, because a
 * platform may hide the environment of system programs, and restarts itself in its own session.
 */
const MARKED = [
  `daemon='console.log("up"); process.stdin.on("close", () => process.exit()).resume()'`,
  `options='{ detached: true, stdio: [${TETHER_FD}, "inherit", "inherit"] }'`,
  `start='require("node:child_process").spawn(process.execPath, ["-e", process.argv[1]],'`,
  '"$0" -e "$start $options).unref()" "$daemon"',
  `read -r _ <&${TETHER_FD}`,
].join("\n");

export interface SelfTestOptions {
  readonly clock: Clock;
  readonly workspace: string;
  /** Makes one for this test alone: it is closed as a dying server would close it. */
  readonly make: () => Containment | undefined;
  /** Default /proc. */
  readonly processTable?: ProcessTable;
}

/** Never rejects. */
export async function selfTest(options: SelfTestOptions): Promise<TestResult> {
  const results = await Promise.all([attempt(options, "stop"), attempt(options, "server-killed")]);
  const failed = results.filter((one) => one.kind === "failed");
  return failed.find(({ shortage }) => shortage) ?? failed[0] ?? { kind: "passed" };
}

type Scenario = "stop" | "server-killed";

async function attempt(options: SelfTestOptions, scenario: Scenario): Promise<TestResult> {
  let trial: Trial | undefined;
  try {
    const containment = options.make();
    if (containment === undefined) return failed("a program or kernel feature that it needs is missing");
    trial = await Trial.begin(containment, options, scenario);
    const up = await within(options.clock, STEP_MS_MAX, trial.up());
    if (up !== "up") return failed(up ?? "the test process did not start in time");
    trial.end();
    const gone = await within(options.clock, STEP_MS_MAX, trial.gone);
    return gone === undefined ? failed(FAILURE[scenario]) : { kind: "passed" };
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

const FAILURE: Readonly<Record<Scenario, string>> = {
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
  readonly scenario: Scenario;
}

/** One tree, started by a shell that simulates the server. */
class Trial {
  /** Resolves when no process holds the output of the tree. */
  readonly gone: Promise<true>;
  readonly #containment: Containment;
  readonly #plan: LaunchPlan;
  readonly #scenario: Scenario;
  readonly #processTable: ProcessTable;
  readonly #server: ChildProcess;
  readonly #control: Writable;
  readonly #liveness: Readable;
  readonly #status: Status;
  readonly #release: (() => void) | undefined;
  readonly #clock: Clock;
  #held: HeldTree | undefined;
  #identity: Identity | undefined;
  #stdout = "";
  #stderr = "";

  /** Rejects if the machine lacks resources for it. */
  static async begin(containment: Containment, options: SelfTestOptions, scenario: Scenario): Promise<Trial> {
    const { workspace, clock, processTable = PROC_PROCESS_TABLE } = options;
    const plan = planOf(workspace, processTable);
    const { file, args, prepare, release } = containment.wrap(plan);
    prepare?.();
    const server = spawnCovered(SHELL, ["-c", SERVER, "belay", file, ...args], {
      cwd: workspace,
      env: plan.env,
      detached: true,
      // The last one is the tether. No data is written to it, and it is closed at the end.
      stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", "pipe", "pipe"],
    });
    try {
      await spawned(server);
    } catch (error) {
      release?.();
      containment.close?.();
      throw error;
    }
    return new Trial({ containment, plan, server, release, processTable, clock, scenario });
  }

  private constructor({ containment, plan, server, release, processTable, clock, scenario }: TrialParts) {
    this.#clock = clock;
    this.#containment = containment;
    this.#scenario = scenario;
    this.#processTable = processTable;
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
      this.#stdout += data.toString("latin1");
    });
    stderr?.on("data", (data: Buffer) => {
      this.#stderr = (this.#stderr + data.toString("utf8")).slice(0, COMPLAINT_BYTES_MAX);
    });
    this.gone = new Promise((resolve) => stdout?.once("close", () => resolve(true)));
  }

  /** Resolves with `up` when the hostile process runs, or with the reason why it does not. */
  async up(): Promise<string> {
    const first = await Promise.race([this.#status.ready.then(() => "ready"), this.gone]);
    const complaint = `${this.#stderr.trim()} ${this.#status.complaint}`.trim();
    if (first !== "ready") return `it did not start${complaint === "" ? "" : `: ${complaint}`}`;
    await this.#processTable.refresh?.();
    this.#held = this.#containment.hold(this.#leader(), this.#plan);
    this.#control.write(GO);
    while (!this.#stdout.includes("up")) {
      const more = new Promise((resolve) => this.#server.stdout?.once("data", resolve));
      if ((await Promise.race([more, this.gone])) === true) return "the test process ended by itself";
    }
    return "up";
  }

  end(): void {
    if (this.#scenario === "stop") {
      this.#held?.force();
      if (this.#containment.tier === "group") void this.#held?.verify(FORCE_WAIT_MS, [this.gone]);
      return;
    }
    // Exactly what the kernel does when the server is killed.
    this.#server.kill("SIGKILL");
    this.#control.destroy();
    this.#containment.close?.();
  }

  /** Removes everything, whatever the result. */
  async clean(): Promise<void> {
    this.#held?.force();
    await this.#held?.verify(FORCE_WAIT_MS, [this.gone]);
    this.#server.kill("SIGKILL");
    for (const stream of this.#server.stdio) stream?.destroy();
    this.#control.destroy();
    this.#liveness.destroy();
    // Some leaders, such as an anchor, exit only when their pipe ends. Waits for that, so the test leaves nothing
    // behind.
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
    if (identity === undefined) throw new Error("its leader has died");
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
      write: (text) => {
        this.#control.write(text);
      },
    };
  }
}

function planOf(workspace: string, processTable: ProcessTable): LaunchPlan {
  const id = "proc_selftest.1";
  // Random, because a watchdog of the trial before may still be searching for its own cookie.
  const cookie = makeCookie(id, randomBytes(9).toString("base64url"));
  const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  return {
    ...{ id, cookie, cwd: workspace, workspace, profile: "none", terminal: false, tether: TETHER_FD },
    argv: processTable.kind === "ps" ? [SHELL, "-c", MARKED, process.execPath] : [SHELL, "-c", HOSTILE],
    env: { PATH: path, [COOKIE_NAME]: cookie },
    limits: { processesMax: PROCESSES_MAX_DEFAULT },
  };
}
