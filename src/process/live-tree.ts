// A running tree: its output, its input, its stop, and its verified end.
//
// Invariants
// 1. `ended` resolves once no process of the tree is left, as far as its tier can verify, or with the pids that are.
// 2. Processes left by the command are ended with it. Those that were signalled politely get the rest of the grace.
// 3. A process that keeps the pipes open delays the end by at most EXIT_DRAIN_MS.
// 4. The path to the kill is synchronous: nothing is read, scanned or awaited before it.
import type { Readable } from "node:stream";
import { ControlError } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Child, ChildEnd, Mechanism, Output, Profile, Tier } from "../ports/spawner.ts";
import type { HeldTree, Leftover, Verified } from "./containment/containment.ts";
import { GO } from "./launch/gate.ts";
import type { Exit, Started } from "./launch/start.ts";
import { Input } from "./launch/stdin.ts";
import { ESCAPED_AFTER_MS, EXIT_DRAIN_MS, LEFTOVERS_MAX } from "./limits.ts";
import type { Capture } from "./output/capture.ts";
import { until, within } from "./tree/poll-until.ts";
import type { ProcessTable } from "./tree/process-table.ts";
import { StopLadder } from "./tree/stop-ladder.ts";
import { Subtree } from "./tree/subtree.ts";

export interface LiveTreeOptions {
  readonly started: Started;
  readonly held: HeldTree;
  readonly capture: Capture;
  readonly clock: Clock;
  readonly processTable: ProcessTable;
  readonly tier: Tier;
  readonly mechanism: Mechanism;
  readonly profile: Profile;
  readonly graceMs: number;
  /** Receives every piece of stdout as it arrives. */
  readonly hear: ((piece: Uint8Array) => void) | undefined;
  /** Undefined: it has no terminal. */
  readonly resize: ((size: { readonly columns: number; readonly rows: number }) => Promise<void>) | undefined;
  /** Called at the end, before `ended` resolves. Must not throw. */
  readonly onEnded: (end: ChildEnd, unsure: boolean) => void;
}

export class LiveTree implements Child {
  readonly pid: number;
  readonly tier: Tier;
  readonly mechanism: Mechanism;
  readonly profile: Profile;
  readonly startedAt: number;
  readonly output: Output;
  readonly tree: Subtree;
  readonly ended: Promise<ChildEnd>;
  readonly #options: LiveTreeOptions;
  readonly #ladder: StopLadder;
  readonly #input: Input;
  /** The command's ends of its output pipes, as /proc names them. Empty where open files cannot be read. */
  readonly #pipes: readonly string[];
  readonly #signals: string[] = [];
  readonly #escaped = Promise.withResolvers<Exit>();
  /** The command has ended: the rest in the pipes is read without waiting for the disk. */
  #over = false;
  /** The leader has died without reporting a status. */
  #leaderless = false;

  constructor(options: LiveTreeOptions) {
    const { started, held, capture, clock, processTable } = options;
    this.#options = options;
    this.pid = held.pid;
    this.tier = options.tier;
    this.mechanism = options.mechanism;
    this.profile = options.profile;
    this.startedAt = clock.now();
    this.output = capture;
    this.tree = new Subtree({ held, processTable, clock });
    this.#input = new Input(started.stdin);
    this.#pipes = [1, 2].flatMap((fd) => processTable.openFile(held.pid, fd) ?? []);
    this.#ladder = new StopLadder({
      clock,
      send: (signal) => this.#send(signal),
      escaped: () => this.#escaped.resolve({ code: undefined, signal: undefined }),
    });
    for (const stream of ["stdout", "stderr"] as const) this.#feed(stream, started[stream]);
    started.control.write(GO); // @fault zombie
    this.ended = this.#live(clock.elapsed());
  }

  stop(graceMs = Number.POSITIVE_INFINITY): void {
    this.#ladder.stop(Math.min(graceMs, this.#options.graceMs));
  }

  write(data: string | Uint8Array): Promise<void> {
    return this.#input.write(data);
  }

  endInput(): void {
    this.#input.end();
  }

  async resize(size: { readonly columns: number; readonly rows: number }): Promise<void> {
    const { resize } = this.#options;
    if (resize === undefined) throw new ControlError("invalid", "This process has no terminal, so it has no size.");
    await resize(size);
  }

  /** Resumes the pipes after a pause for backpressure. */
  drained(): void {
    const { stdout, stderr } = this.#options.started;
    stdout.resume();
    stderr.resume();
  }

  async #live(startedAt: number): Promise<ChildEnd> {
    const { clock, started, capture, onEnded } = this.#options;
    const exit = await this.#commandEnd();
    const durationMs = clock.elapsed() - startedAt;
    const stopped = this.#signals.length > 0;
    this.#over = true;
    this.#input.destroy();
    this.drained();
    const left = await this.#endRest();
    const verified = await this.#verify();
    this.#ladder.end();
    await this.#drain();
    started.control.destroy();
    started.liveness.destroy();
    await capture.end();
    const end: ChildEnd = {
      ...exit,
      durationMs,
      stopped,
      signals: [...this.#signals],
      left: left + verified.killed,
      escaped: verified.left,
    };
    onEnded(end, verified.unverified === true);
    return end;
  }

  /** The exit of the command: reported by the leader, by the leader's own exit, or unknown. */
  async #commandEnd(): Promise<Exit> {
    const { status, exited } = this.#options.started;
    const reported = status.ended;
    const first = await Promise.race([reported, exited.then(() => "exited" as const), this.#escaped.promise]);
    // The leader has exited. Its status may still be in the pipe, unless we killed it.
    const waitMs = this.#ladder.on === "SIGKILL" ? 0 : STATUS_DELAY_MS;
    const last = first === "exited" ? await within(this.#options.clock, waitMs, reported) : first;
    this.#leaderless = last === undefined;
    return last ?? { code: undefined, signal: "SIGKILL" };
  }

  /** Ends what the command has left behind. Returns how many processes that were, as far as they were counted. */
  async #endRest(): Promise<number> {
    const { clock, held, started } = this.#options;
    // After SIGTERM most trees die together: waiting briefly for the last is cheaper than a scan.
    if (this.#ladder.on === "SIGTERM") await within(clock, TOGETHER_MS, closed(started.liveness));
    if (this.#ladder.on === "SIGKILL") return 0;
    // Without its leader a tree has no process that waits for it: the rest is ended now.
    if (this.#leaderless) {
      held.force();
      return 0;
    }
    if (held.refresh !== undefined)
      await within(
        clock,
        EXIT_DRAIN_MS,
        held.refresh().catch(() => undefined),
      );
    const polite = this.#ladder.on === "SIGTERM";
    const isForced = (): boolean => this.#ladder.on === "SIGKILL";
    const leftNow = held.left(LEFTOVERS_MAX);
    const isStorm = leftNow.length >= LEFTOVERS_MAX;
    if (isStorm) await within(clock, polite ? this.#ladder.leftMs : EXIT_DRAIN_MS, this.#ladder.forced);
    else if (leftNow.length > 0) {
      const waitMs = polite ? this.#ladder.leftMs : EXIT_DRAIN_MS;
      // After SIGTERM they may clean up; otherwise they may finish their output while it can still be read.
      const delays = ({ pid, signalled }: Leftover): boolean => (polite ? signalled : this.#holdsOutput(pid));
      const isQuiet = (): boolean => isForced() || !held.left(LEFTOVERS_MAX).some(delays);
      await until(isQuiet, { clock, waitMs, wakes: [this.#ladder.forced] });
    }
    const isKnown = leftNow.length === 0 || (isStorm && isForced());
    const left = isKnown ? leftNow.length : held.left(LEFTOVERS_MAX).length;
    if (left > 0) this.#ladder.force();
    else held.force();
    return left;
  }

  /** Whether this process holds the pipes. Where that cannot be read: whether any process does. */
  #holdsOutput(pid: number): boolean {
    const { processTable, started } = this.#options;
    if (processTable.kind === "ps") return !started.stdout.closed || !started.stderr.closed;
    return processTable.hasOpen(pid, this.#pipes);
  }

  async #verify(): Promise<Verified> {
    const { held, started } = this.#options;
    // After SIGKILL by the ladder, the rest of the last rung, but at least one scan.
    const waitMs = this.#ladder.on === "SIGKILL" ? Math.max(this.#ladder.leftMs, LAST_SCAN_MS) : ESCAPED_AFTER_MS;
    return held.verify(waitMs, [closed(started.liveness), started.exited]);
  }

  /** Reads the rest of the pipes, and closes them even if other processes hold them. */
  async #drain(): Promise<void> {
    const { stdout, stderr } = this.#options.started;
    await within(this.#options.clock, EXIT_DRAIN_MS, Promise.all([closed(stdout), closed(stderr)]));
    stdout.destroy();
    stderr.destroy();
  }

  #feed(name: "stdout" | "stderr", stream: Readable): void {
    const { capture, started, hear } = this.#options;
    stream.on("data", (bytes: Buffer) => {
      if (name === "stdout") hear?.(bytes);
      if (capture.take(name, bytes) !== "pause" || this.#over) return;
      started.stdout.pause();
      started.stderr.pause();
    });
  }

  #send(signal: "SIGTERM" | "SIGKILL"): void {
    this.#signals.push(signal);
    if (signal === "SIGTERM") this.#options.held.sendSigterm();
    else this.#options.held.force();
  }
}

/** The time of two scans of all processes. */
const LAST_SCAN_MS = 100;

const closed = (stream: Readable): Promise<void> =>
  stream.closed ? Promise.resolve() : new Promise((resolve) => stream.once("close", resolve));

/** How long to wait, after SIGTERM, for the rest of the tree before it is scanned. */
const TOGETHER_MS = 2;

/** How long the leader's status may arrive after its exit: it is in a pipe already. */
const STATUS_DELAY_MS = 50;
