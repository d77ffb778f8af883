// A tree that is going on: its output, its input, its stop, and its verified end.
//
// Invariants
// 1. `ended` resolves once nobody of the tree is left, as far as its tier can tell, or names those who are.
// 2. What is left of a tree when its command has ended is ended with it. Who was asked politely may use up the grace.
// 3. Nobody who holds the pipes open delays the end by more than EXIT_DRAIN_MS.
// 4. The way to the kill is synchronous: nothing is read, scanned or awaited before it.
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
  /** Hears every piece of stdout as it comes. */
  readonly hear: ((piece: Uint8Array) => void) | undefined;
  /** Undefined: it has no terminal. */
  readonly resize: ((size: { readonly columns: number; readonly rows: number }) => Promise<void>) | undefined;
  /** Called when it has ended, before anybody hears of it. Must not throw. */
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
  /** The command's ends of its output pipes, as /proc names them. None where files cannot be seen. */
  readonly #pipes: readonly string[];
  readonly #signals: string[] = [];
  readonly #escaped = Promise.withResolvers<Exit>();
  /** The command has ended: from here on what is still in the pipes is read without regard to the disk. */
  #over = false;
  /** The leader has died without a word. */
  #leaderless = false;

  constructor(options: LiveTreeOptions) {
    const { started, held, capture, clock, processTable: sight } = options;
    this.#options = options;
    this.pid = held.pid;
    this.tier = options.tier;
    this.mechanism = options.mechanism;
    this.profile = options.profile;
    this.startedAt = clock.now();
    this.output = capture;
    this.tree = new Subtree({ held, processTable: sight, clock });
    this.#input = new Input(started.stdin);
    this.#pipes = [1, 2].flatMap((fd) => sight.openFile(held.pid, fd) ?? []);
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

  /** Lets the pipes flow again; for whoever has told us to pause. */
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
    const left = await this.#tidy();
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

  /** How the command ended: by the leader's word, by the leader's end, or not at all. */
  async #commandEnd(): Promise<Exit> {
    const { status, exited } = this.#options.started;
    const said = status.ended;
    const first = await Promise.race([said, exited.then(() => "exited" as const), this.#escaped.promise]);
    // The leader is gone. Its last word may still be on its way, unless it was killed by us.
    const waitMs = this.#ladder.on === "SIGKILL" ? 0 : LAST_WORD_MS;
    const last = first === "exited" ? await within(this.#options.clock, waitMs, said) : first;
    this.#leaderless = last === undefined;
    return last ?? { code: undefined, signal: "SIGKILL" };
  }

  /** Ends what the command has left behind. Answers how many that were, as far as they were looked at. */
  async #tidy(): Promise<number> {
    const { clock, held, started } = this.#options;
    // Asked, most trees die together: to wait for the last of them takes less from them than to look for them.
    if (this.#ladder.on === "SIGTERM") await within(clock, TOGETHER_MS, closed(started.liveness));
    if (this.#ladder.on === "SIGKILL") return 0;
    // Without its leader a tree has nobody to wait for it: what is left of it is ended now.
    if (this.#leaderless) {
      held.force();
      return 0;
    }
    if (held.look !== undefined)
      await within(
        clock,
        EXIT_DRAIN_MS,
        held.look().catch(() => undefined),
      );
    const asking = this.#ladder.on === "SIGTERM";
    const isForced = (): boolean => this.#ladder.on === "SIGKILL";
    const leftNow = held.left(LEFTOVERS_MAX);
    const isStorm = leftNow.length >= LEFTOVERS_MAX;
    if (isStorm) await within(clock, asking ? this.#ladder.leftMs : EXIT_DRAIN_MS, this.#ladder.forced);
    else if (leftNow.length > 0) {
      const waitMs = asking ? this.#ladder.leftMs : EXIT_DRAIN_MS;
      // Asked, they may tidy up; otherwise they may finish what they are saying, if they can still be heard.
      const delays = ({ pid, asked }: Leftover): boolean => (asking ? asked : this.#isHeard(pid));
      const isQuiet = (): boolean => isForced() || !held.left(LEFTOVERS_MAX).some(delays);
      await until(isQuiet, { clock, waitMs, wakes: [this.#ladder.forced] });
    }
    const isKnown = leftNow.length === 0 || (isStorm && isForced());
    const left = isKnown ? leftNow.length : held.left(LEFTOVERS_MAX).length;
    if (left > 0) this.#ladder.force();
    else held.force();
    return left;
  }

  /** Whether it holds the pipes. Where that cannot be seen: whether anybody does. */
  #isHeard(pid: number): boolean {
    const { processTable: sight, started } = this.#options;
    if (sight.kind === "ps") return !started.stdout.closed || !started.stderr.closed;
    return sight.hasOpen(pid, this.#pipes);
  }

  async #verify(): Promise<Verified> {
    const { held, started } = this.#options;
    // Forced by the ladder, it has what is left of the last rung, and one look in any case.
    const waitMs = this.#ladder.on === "SIGKILL" ? Math.max(this.#ladder.leftMs, LAST_LOOK_MS) : ESCAPED_AFTER_MS;
    return held.verify(waitMs, [closed(started.liveness), started.exited]);
  }

  /** Reads what is left in the pipes, and closes them, whoever else still holds them. */
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
    if (signal === "SIGTERM") this.#options.held.ask();
    else this.#options.held.force();
  }
}

/** What a look takes that scans everybody, twice. */
const LAST_LOOK_MS = 100;

const closed = (stream: Readable): Promise<void> =>
  stream.closed ? Promise.resolve() : new Promise((resolve) => stream.once("close", resolve));

/** How long the others of a tree that was asked may be behind its command, before somebody looks for them. */
const TOGETHER_MS = 2;

/** How long the leader's last word may be behind its end: it is in a pipe already. */
const LAST_WORD_MS = 50;
