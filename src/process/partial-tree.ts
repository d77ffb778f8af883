// Part of a tree that runs already, as a child with a separate lifetime and stop: what a long-lived program has
// started and left running. It ends when none of its processes is left.
import { ControlError } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Child, ChildEnd, Mechanism, Output, Profile, Tier, TreeEnd, TreeMember } from "../ports/spawner.ts";
import { ESCAPED_AFTER_MS } from "./limits.ts";
import type { LiveTree } from "./live-tree.ts";
import type { Capture } from "./output/capture.ts";

export interface PartialChildOptions {
  readonly whole: Pick<LiveTree, "pid" | "tier" | "mechanism" | "profile" | "tree" | "ended">;
  readonly kept: readonly TreeMember[];
  /** Records which processes were ended. */
  readonly capture: Capture;
  readonly clock: Clock;
  readonly graceMs: number;
  readonly onEnded: () => void;
}

/** How often the process table is read: the kernel reports the end of a child to its parent only. */
const SCAN_EVERY_MS = 1_000;

export class PartialChild implements Child {
  readonly pid: number;
  readonly tier: Tier;
  readonly mechanism: Mechanism;
  readonly profile: Profile;
  readonly startedAt: number;
  readonly output: Output;
  readonly ended: Promise<ChildEnd>;
  readonly #options: PartialChildOptions;
  readonly #end = Promise.withResolvers<ChildEnd>();
  readonly #beganAt: number;
  #phase: "running" | "stopping" | "over" = "running";
  #killSooner: () => void = ignore;
  #cancelScan: () => void = ignore;

  constructor(options: PartialChildOptions) {
    const { whole, capture, clock } = options;
    this.#options = options;
    this.pid = whole.pid;
    this.tier = whole.tier;
    this.mechanism = whole.mechanism;
    this.profile = whole.profile;
    this.startedAt = clock.now();
    this.output = capture;
    this.ended = this.#end.promise;
    this.#beganAt = clock.elapsed();
    // The part ends with its whole tree.
    void whole.ended.then(() => this.#over({ ended: [], left: [], sure: true }));
    this.#scanLater();
  }

  stop(graceMs = Number.POSITIVE_INFINITY): void {
    const wait = Math.min(graceMs, this.#options.graceMs);
    if (this.#phase === "stopping" && wait === 0) this.#killSooner();
    if (this.#phase !== "running") return;
    this.#phase = "stopping";
    this.#cancelScan();
    const { whole, kept } = this.#options;
    const signalled = whole.tree.askOthers(kept);
    void this.#stop(signalled, wait);
  }

  write(): Promise<void> {
    return Promise.reject(new ControlError("invalid", "Part of a process tree has no separate input."));
  }

  endInput(): void {}

  resize(): Promise<void> {
    return Promise.reject(new ControlError("invalid", "This process has no terminal, so it has no size."));
  }

  async #stop(signalled: readonly TreeMember[], graceMs: number): Promise<void> {
    const { whole, kept } = this.#options;
    const hurry = new Promise<"hurry">((resolve) => {
      this.#killSooner = () => resolve("hurry");
    });
    const ending = whole.tree.endOthers(kept, { graceMs, limitMs: graceMs + ESCAPED_AFTER_MS });
    const first = await Promise.race([ending, hurry]);
    const end = first === "hurry" ? await whole.tree.endOthers(kept, { graceMs: 0, limitMs: ESCAPED_AFTER_MS }) : first;
    const known = new Set(signalled.map(({ pid }) => pid));
    const early = signalled.filter(({ pid }) => !end.left.some((one) => one.pid === pid));
    this.#over({ ...end, ended: [...early, ...end.ended.filter(({ pid }) => !known.has(pid))] });
  }

  #scanLater(): void {
    const { clock, whole, kept } = this.#options;
    this.#cancelScan = clock.after(
      SCAN_EVERY_MS,
      () => {
        const keys = new Set(kept.map(({ pid, startTime }) => `${pid} ${startTime}`));
        whole.tree.members().then(
          (members) => {
            if (this.#phase !== "running") return;
            if (members.some(({ pid, startTime }) => !keys.has(`${pid} ${startTime}`))) this.#scanLater();
            else this.#over({ ended: [], left: [], sure: true });
          },
          () => this.#scanLater(),
        );
      },
      "idle",
    );
  }

  #over({ ended, left, sure }: TreeEnd): void {
    if (this.#phase === "over") return;
    const stopped = this.#phase === "stopping";
    this.#phase = "over";
    this.#cancelScan();
    const { capture, clock, onEnded, whole } = this.#options;
    const lines = ended.map(({ pid, command }) => `ended: ${command || "process"} (pid ${pid})\n`).join("");
    capture.take("stdout", Buffer.from(lines));
    const end: ChildEnd = {
      ...{ code: undefined, signal: undefined, durationMs: clock.elapsed() - this.#beganAt, stopped },
      ...{ signals: stopped ? ["SIGTERM"] : [], left: 0 },
      escaped: sure ? left.map(({ pid }) => pid) : [whole.pid],
    };
    void capture.end().then(() => {
      onEnded();
      this.#end.resolve(end);
    });
  }
}

const ignore = (): void => {};
