// Starts processes in trees that can be ended as a whole, and keeps their output.
//
// Invariants
// 1. No command begins before its tree is held and in the ledger.
// 2. Every tree that was started is in `#live` until it has verifiably ended. `close` and the end of this program end
//    all of them.
// 3. A start that fails leaves nothing: no process, no entry, no directory.
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isMainThread } from "node:worker_threads";
import { ControlError, messageOf } from "../core/errors.ts";
import { isProcessId, type ProcessId } from "../core/model/ids.ts";
import type { Clock } from "../ports/clock.ts";
import type {
  Child,
  Mechanism,
  OutputFile,
  PartOfTree,
  ProcessLimits,
  Profile,
  Spawner,
  SpawnRequest,
  Tier,
} from "../ports/spawner.ts";
import { runtimeName } from "../system/runtime.ts";
import { endCgroup } from "./containment/cgroup.ts";
import type { Containment, HeldTree, LaunchPlan, Wrapped } from "./containment/containment.ts";
import { type CpuGroups, findCpuGroups, removeEmptyShares, renice, sharesBySession } from "./containment/cpu-share.ts";
import { type Diagnosis, diagnose } from "./containment/doctor.ts";
import { lookAtMachine, type Machine } from "./containment/machine.ts";
import type { PathList } from "./containment/mechanisms.ts";
import { elsewhere, processTableOn } from "./containment/platform.ts";
import { type Choice, choose, noteMechanism } from "./containment/tiers.ts";
import { toArguments } from "./launch/command-line.ts";
import { childEnvironment, makeCookie } from "./launch/environment.ts";
import { PipePool } from "./launch/pipe-pool.ts";
import { resolveProgram } from "./launch/program-lookup.ts";
import { abandon, gone, NO_ROOM, reachGate, type Started, type Starting, start, toLeader } from "./launch/start.ts";
import { inTerminal, resizeTerminal } from "./launch/terminal.ts";
import { Undo } from "./launch/undo.ts";
import { checkSessionDirectory, checkWorkingDirectory } from "./launch/working-directory.ts";
import { FORCE_WAIT_MS, GRACE_MS, PROCESSES_MAX_DEFAULT, SHORTAGE_NOTICE_MS } from "./limits.ts";
import { LiveTree } from "./live-tree.ts";
import { Capture } from "./output/capture.ts";
import { OutputDirectory } from "./output/output-directory.ts";
import { openOutput } from "./output/saved-output.ts";
import { PartialChild } from "./partial-tree.ts";
import { type Ledger, openLedger, type Swept } from "./tree/ledger.ts";
import { until } from "./tree/poll-until.ts";
import type { Identity } from "./tree/proc.ts";
import type { ProcessTable } from "./tree/process-table.ts";

export interface SpawnerOptions {
  /** For the ledger and the output. Created if missing. */
  readonly dir: string;
  /** The default working directory of commands, writable in the profile `workspace`. */
  readonly workspace: string;
  readonly clock: Clock;
  /** Refuses to open if this tier, or a stronger one, is not available. */
  readonly requireTier?: Tier;
  /** Only this mechanism. */
  readonly mechanism?: Mechanism;
  /** Default `contain` if the mechanism supports it, else `none`. */
  readonly profile?: Profile;
  /** Files and directories that no process sees, in tier `namespace`. A function is called for each process. */
  readonly hidden?: PathList;
  /** Files and directories that no process can change, in tier `namespace`. Must not include a working directory. */
  readonly readOnly?: readonly string[];
  /** Names of variables to pass on from the server's environment. */
  readonly env?: { readonly allow?: readonly string[] };
  readonly limits?: ProcessLimits;
  /** Default GRACE_MS. */
  readonly graceMs?: number;
  /** A cgroup v2 directory that was delegated to us. Default: our own, if delegated. */
  readonly cgroup?: string;
  /** Tests the mechanisms again, even if results are cached. */
  readonly fresh?: boolean;
  /** Default: the process table of this platform. */
  readonly processTable?: ProcessTable;
  /** Receives messages for the operator. Must not throw. */
  readonly onNotice?: (text: string) => void;
}

/** A Spawner, with methods for operators. */
export interface OpenSpawner extends Spawner {
  /** Trees that an earlier server had left behind, and the result of ending them. */
  readonly swept: readonly Swept[];
  doctor(): Promise<Diagnosis>;
}

/** Ends what earlier servers have left, and chooses the strongest containment available. */
export async function openSpawner(options: SpawnerOptions): Promise<OpenSpawner> {
  if (!isMainThread) {
    // The kernel ends a tree with the thread that has started it, and a worker may end long before the program.
    throw new ControlError("uncontained", "Processes can be started from the main thread only.", {
      hint: "Open it in the main thread, and send requests there.",
    });
  }
  const { clock, processTable = processTableOn(process.platform, clock) } = options;
  if (processTable === undefined) {
    throw new ControlError("uncontained", `Processes cannot be held on ${process.platform}, so none are started.`, {
      hint: elsewhere(process.platform),
    });
  }
  if (runtimeName() === "deno") {
    throw new ControlError("uncontained", "Processes cannot be held in Deno: what it starts lacks the pipes for it.", {
      hint: "Run Belay in Node.js or Bun, or open it without `processes`.",
    });
  }
  mkdirSync(options.dir, { recursive: true, mode: 0o700 });
  const dir = realpathSync(options.dir);
  const workspace = await checkWorkingDirectory(undefined, options.workspace);
  const machine = lookAtMachine(options.cgroup);
  const ledger = openLedger({
    dir: join(dir, "ledger"),
    clock,
    processTable,
    endCgroup: (path) => endCgroup(path, clock),
  });
  const swept = await sweep(ledger, clock, processTable);
  const choice = await choose({ ...options, processTable, machine, stateDir: dir, workspace });
  const change = noteMechanism(dir, choice.containment.mechanism);
  if (change !== undefined) options.onNotice?.(change);
  const pipes = new PipePool(
    pipesDirectory(dir, ledger.owner, processTable),
    processTable.kind === "ps" || runtimeName() === "bun",
  );
  await pipes.fill();
  // An id in the ledger belongs to a tree that may be alive, perhaps of another server.
  const isLive = (id: ProcessId): boolean => existsSync(join(dir, "ledger", `${id}.json`));
  const outputs = new OutputDirectory(join(dir, "output"), { isLive });
  return new TreeSpawner(
    { ...options, dir, workspace },
    { machine, processTable, ledger, swept, choice, pipes, outputs },
  );
}

/** Ends what earlier servers have left. Waits for anchors first, because they know their trees best. */
async function sweep(ledger: Ledger, clock: Clock, processTable: ProcessTable): Promise<readonly Swept[]> {
  const { entries } = ledger.leftovers();
  const anchors = entries.flatMap((one) => (one.mechanism === "anchor" && one.phase === "spawned" ? [one.child] : []));
  await until(() => !anchors.some((one) => processTable.isStill(one)), { clock, waitMs: FORCE_WAIT_MS });
  return ledger.sweep(entries);
}

/** A directory for each server, because several may share `dir`. Those of dead servers are removed. */
function pipesDirectory(dir: string, { pid, startTime, bootId }: Identity, processTable: ProcessTable): string {
  const names = readdirSync(dir);
  // Refresh after reading: every server that had a directory by then, and is alive, is seen.
  processTable.refreshNow?.();
  for (const name of names) {
    const [, thePid, theTime] = /^pipes-(\d+)-(\d+)$/.exec(name) ?? [];
    if (thePid === undefined || processTable.isStill({ pid: Number(thePid), startTime: Number(theTime), bootId }))
      continue;
    rmSync(join(dir, name), { recursive: true, force: true });
  }
  return join(dir, `pipes-${pid}-${startTime}`);
}

interface SpawnerParts {
  readonly machine: Machine;
  readonly processTable: ProcessTable;
  readonly ledger: Ledger;
  readonly swept: readonly Swept[];
  readonly choice: Choice;
  readonly pipes: PipePool;
  readonly outputs: OutputDirectory;
}

class TreeSpawner implements OpenSpawner {
  readonly tier: Tier;
  readonly mechanism: Mechanism;
  readonly swept: readonly Swept[];
  readonly #options: SpawnerOptions;
  readonly #parts: SpawnerParts;
  readonly #containment: Containment;
  /** Where each tree gets a share of the processor. Undefined: niceness suffices, or is the only means. */
  readonly #cpuGroups: CpuGroups | undefined;
  readonly #live = new Map<ProcessId, { readonly child: LiveTree; readonly held: HeldTree }>();
  /** Starts in progress. */
  readonly #starting = new Set<Promise<unknown>>();
  #shortageAt = Number.NEGATIVE_INFINITY;
  #closed = false;

  constructor(options: SpawnerOptions, parts: SpawnerParts) {
    this.#options = options;
    this.#parts = parts;
    this.#containment = parts.choice.containment;
    this.tier = this.#containment.tier;
    this.mechanism = this.#containment.mechanism;
    this.swept = parts.swept;
    // A tree that has a control group already is not moved to another one.
    this.#cpuGroups = this.mechanism !== "cgroup" && sharesBySession() ? findCpuGroups() : undefined;
    if (this.#cpuGroups !== undefined) removeEmptyShares(this.#cpuGroups);
    process.on("exit", this.#forceAll);
  }

  async spawn(request: SpawnRequest): Promise<Child> {
    if (this.#closed) throw new ControlError("shutting_down", "Belay is shutting down and starts no more processes.");
    if (request.within !== undefined) return this.#part(request, request.within);
    const starting = this.#spawn(request);
    this.#starting.add(starting);
    try {
      return await starting;
    } finally {
      this.#starting.delete(starting);
    }
  }

  async output(id: ProcessId): Promise<OutputFile | undefined> {
    const live = this.#live.get(id);
    if (live !== undefined) return live.child.output;
    return isProcessId(id) ? openOutput(this.#parts.outputs.pathOf(id)) : undefined;
  }

  discard(ids: readonly ProcessId[]): Promise<void> {
    return this.#parts.outputs.discard(ids);
  }

  doctor(): Promise<Diagnosis> {
    return diagnose({
      ...this.#options,
      machine: this.#parts.machine,
      processTable: this.#parts.processTable,
      stateDir: this.#options.dir,
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#starting);
    const all = [...this.#live.values()].map(({ child }) => child);
    for (const child of all) child.stop();
    await Promise.all(all.map((child) => child.ended));
    process.off("exit", this.#forceAll);
    this.#containment.close?.();
    this.#parts.pipes.close();
  }

  async #spawn(request: SpawnRequest): Promise<Child> {
    const plan = await this.#plan(request);
    if (request.signal?.aborted === true) throw stoppedBefore(plan);
    const wrapped = this.#containment.wrap(plan);
    const { ledger, outputs, pipes, processTable } = this.#parts;
    const { clock } = this.#options;
    const { mechanism } = this;
    const cgroup = wrapped.cgroup === undefined ? {} : { cgroup: wrapped.cgroup };
    ledger.intend({ id: plan.id, sessionId: request.sessionId, cookie: plan.cookie, mechanism, ...cgroup });
    let started: Started | undefined;
    const undo = new Undo();
    undo.add(() => ledger.reaped(plan.id));
    try {
      const dir = outputs.make(plan.id);
      undo.add(() => outputs.remove(plan.id));
      wrapped.prepare?.();
      undo.add(() => wrapped.release?.());
      const starting: Starting = { plan, wrapped, openInput: request.stdin === "open", pipes, clock };
      started = await start(starting);
      await reachGate(started, starting);
      if (processTable.refresh !== undefined) await processTable.refresh();
      return this.#hold({ request, plan, wrapped, started, dir });
    } catch (error) {
      // A process that has not died stays in the ledger until it has, so that the next server can find it.
      const cleanUp = (): Promise<void> =>
        endCgroup(wrapped.cgroup, clock).then(
          () => undo.all(),
          () => {},
        );
      if (started === undefined || (await abandon(started, clock))) await cleanUp();
      else void gone(started).then(cleanUp);
      this.#noteShortage(error);
      if (error instanceof ControlError) throw error;
      throw new ControlError("not_started", `"${plan.argv[0]}" was not started: ${messageOf(error)}`, { cause: error });
    }
  }

  /** The part is held and recorded with its whole tree. */
  #part({ id, signal, graceMs }: SpawnRequest, { process: of, kept }: PartOfTree): Child {
    const { outputs } = this.#parts;
    const { clock } = this.#options;
    const whole = this.#live.get(of)?.child;
    if (whole === undefined || !isProcessId(id)) throw new ControlError("not_found", `${of} does not run here.`);
    if (signal?.aborted === true) throw new ControlError("not_started", `${id} was stopped before it was held.`);
    const capture = new Capture({ dir: outputs.make(id), clock, streams: "apart" });
    const onEnded = (): void => outputs.ended(id);
    return new PartialChild({ whole, kept, capture, clock, graceMs: graceMs ?? GRACE_MS, onEnded });
  }

  /** Holds the tree, records it and opens the gate, in one tick. */
  #hold(ready: ReadyStart): LiveTree {
    const { request, plan, wrapped, started, dir } = ready;
    const { ledger, outputs, machine, processTable } = this.#parts;
    // The last check, in the tick in which the command would begin.
    if (request.signal?.aborted === true) throw stoppedBefore(plan);
    const identity = processTable.identityOf(started.child.pid);
    if (identity === undefined) throw new ControlError("not_started", "The leader of the process has died.");
    const tree = this.#containment.hold(toLeader(started, identity), plan);
    ledger.spawned(plan.id, tree.identity);
    const { held, share } = renice(tree, plan, { tier: this.#containment.tier, groups: this.#cpuGroups });
    const capture: Capture = new Capture({
      ...{ dir, clock: this.#options.clock },
      outputBytesMax: plan.limits.outputBytesMax,
      streams: plan.terminal ? "one" : "apart",
      onDrain: () => child.drained(),
    });
    const child: LiveTree = new LiveTree({
      ...{ started, held, capture, processTable, clock: this.#options.clock },
      ...{ tier: this.tier, mechanism: this.mechanism, profile: plan.profile },
      graceMs: request.graceMs ?? this.#options.graceMs ?? GRACE_MS,
      hear: request.hear,
      resize: plan.terminal ? (size) => resizeTerminal(held.pid, size, machine.programs.stty) : undefined,
      onEnded: (end, unsure) => {
        this.#live.delete(plan.id);
        wrapped.release?.();
        share?.release();
        // A tree with survivors stays in the ledger: the next start tries again.
        if (end.escaped.length === 0) ledger.reaped(plan.id);
        else this.#options.onNotice?.(escapeNotice(plan.id, end.escaped, unsure));
        if (capture.trouble !== undefined) this.#options.onNotice?.(capture.trouble);
        outputs.ended(plan.id);
      },
    });
    this.#live.set(plan.id, { child, held });
    return child;
  }

  /** The model gets the error of each start; the operator gets at most one notice a minute. */
  #noteShortage(error: unknown): void {
    if (!(error instanceof ControlError) || error.hint !== NO_ROOM) return;
    const now = this.#options.clock.elapsed();
    if (now - this.#shortageAt < SHORTAGE_NOTICE_MS) return;
    this.#shortageAt = now;
    this.#options.onNotice?.(`Commands cannot be started. ${error.message} ${NO_ROOM}`);
  }

  async #plan(request: SpawnRequest): Promise<LaunchPlan> {
    const { limits = {}, env } = this.#options;
    if (!isProcessId(request.id)) throw new ControlError("invalid", "The id of a process must begin with proc_.");
    const argv = toArguments(request.command);
    const profile = this.#profile(request.profile);
    const own = request.workspace;
    const workspace = own === undefined ? this.#options.workspace : await checkSessionDirectory(own);
    const cwd = await checkWorkingDirectory(request.cwd, workspace);
    const cookie = makeCookie(request.id, randomBytes(9).toString("base64url"));
    const terminal = request.terminal !== undefined;
    const childEnv = childEnvironment({
      ...{ given: request.env, inherit: request.inherit, allow: env?.allow, from: process.env, cookie, terminal },
    });
    const [program, ...args] = argv;
    const found: readonly [string, ...string[]] = [resolveProgram(program, cwd, childEnv), ...args];
    return {
      ...{ id: request.id, cookie, cwd, workspace, profile, terminal },
      argv: request.terminal ? inTerminal(found, request.terminal, this.#terminalMaker()) : found,
      // The profile `workspace` does not include the server's temporary directory.
      env: profile === "workspace" ? { ...childEnv, TMPDIR: "/tmp" } : childEnv,
      limits: { processesMax: PROCESSES_MAX_DEFAULT, ...limits, ...request.limits },
    };
  }

  /** Other platforms have a program of the same name with other options. */
  #terminalMaker(): string | undefined {
    const { machine, processTable } = this.#parts;
    if (processTable.kind === "proc") return machine.programs.script;
    throw new ControlError("not_started", "A terminal was requested, but they are supported on Linux only.", {
      hint: "Start it without a terminal.",
    });
  }

  #profile(wanted: Profile | undefined): Profile {
    const { profiles, mechanism } = this.#containment;
    const profile = wanted ?? this.#options.profile ?? (profiles.includes("contain") ? "contain" : "none");
    if (profiles.includes(profile)) return profile;
    throw new ControlError("uncontained", `The profile "${profile}" needs more than "${mechanism}" can do here.`, {
      hint: "Install bubblewrap (apt-get install bubblewrap), then run `belay doctor`. Or ask for a lower profile.",
    });
  }

  /** Runs when this program exits without `close`. */
  readonly #forceAll = (): void => {
    for (const { held } of this.#live.values()) held.force();
  };
}

const escapeNotice = (id: ProcessId, pids: readonly number[], unsure: boolean): string =>
  unsure
    ? `The leader of ${id} (pid ${pids.join(", ")}) was killed: it is unknown whether a process of its tree is left.`
    : `${id} has escaped: ${pids.join(", ")} survived every signal.`;

const stoppedBefore = (plan: LaunchPlan): ControlError =>
  new ControlError("not_started", `"${plan.argv[0]}" was not started: it was stopped before it could begin.`);

interface ReadyStart {
  readonly request: SpawnRequest;
  readonly plan: LaunchPlan;
  readonly wrapped: Wrapped;
  readonly started: Started;
  readonly dir: string;
}
