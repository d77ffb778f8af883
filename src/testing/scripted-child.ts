// One process, driven by the test. It runs no operating system process, and keeps the same guarantees as one.
//
// Invariants
// 1. It ends when the test ends it, or when it is stopped, as its `manner` defines; never without either.
// 2. `stopped` is true exactly if a signal was sent before it had ended.
// 3. Between a fatal signal and the verification of its death it is dying: it still exists, and `ended` is pending.
import { Bug } from "../core/bug.ts";
import { ControlError } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Child, ChildEnd, Mechanism, Profile, SpawnRequest, Tier } from "../ports/spawner.ts";
import { ScriptedOutput } from "./scripted-output.ts";

/**
 * How it reacts to a stop.
 * `dies`: at the first signal. `ignores`: SIGTERM; only SIGKILL ends it. `exits`: with code 0, in the same tick,
 * after the signal. `exited`: with code 0, just before the signal was sent. `escapes`: it survives, and is reported
 * as escaped.
 */
export type ExitBehavior = "dies" | "ignores" | "exits" | "exited" | "escapes";

/**
 * When the death of a stopped child is verified. Default: in the tick of the fatal signal.
 * `{ afterMs }`: this much later, as when the kernel takes 700 ms to free the memory of a large process. `never`: not
 * even after SIGKILL; `ended` settles only if the test calls `verifyDeath()`.
 * Combines with every manner. For `ignores` the time counts from SIGKILL; for `escapes` it is the time from SIGKILL
 * until the child is reported as escaped (default 10 s).
 */
export type DeathVerified = { readonly afterMs: number } | "never";

export interface ScriptedChildParts {
  readonly request: SpawnRequest;
  readonly clock: Clock;
  readonly pid: number;
  readonly tier: Tier;
  readonly mechanism: Mechanism;
  readonly manner: ExitBehavior;
  readonly deathVerified?: DeathVerified | undefined;
  readonly graceMs: number;
}

export class ScriptedChild implements Child {
  readonly request: SpawnRequest;
  readonly pid: number;
  readonly tier: Tier;
  readonly mechanism: Mechanism;
  readonly profile: Profile;
  readonly startedAt: number;
  readonly output: ScriptedOutput;
  readonly ended: Promise<ChildEnd>;
  readonly manner: ExitBehavior;
  readonly deathVerified: DeathVerified;
  /** The grace period of each stop. */
  readonly stops: number[] = [];
  /** Whether the process exists. A dying child exists until its death is verified, an escaped one permanently. */
  alive = true;
  /** When the fatal signal was sent, on the monotonic clock, if the death was not verified at once. */
  dyingSince: number | undefined = undefined;
  /** How it ended, once it has. */
  end: ChildEnd | undefined = undefined;
  /** What was written to it, whether its input has ended, and the size of its terminal. */
  input = "";
  inputEnded: boolean;
  size: SpawnRequest["terminal"];
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #beganAt: number;
  readonly #signals: string[] = [];
  #forcedAt: number | undefined = undefined;
  #dispose: () => void = ignore;
  #verify: () => void = ignore;
  #cancelVerification: () => void = ignore;
  #resolve: (end: ChildEnd) => void = ignore;

  constructor(parts: ScriptedChildParts) {
    const { request, clock } = parts;
    this.request = request;
    this.pid = parts.pid;
    this.tier = parts.tier;
    this.mechanism = parts.mechanism;
    this.manner = parts.manner;
    this.profile = request.profile ?? "contain";
    this.startedAt = clock.now();
    this.inputEnded = request.stdin !== "open";
    this.size = request.terminal;
    this.output = new ScriptedOutput(`/scripted/${request.id}`, clock.elapsed());
    this.#clock = clock;
    this.#graceMs = request.graceMs ?? parts.graceMs;
    this.deathVerified = parts.deathVerified ?? { afterMs: parts.manner === "escapes" ? ESCAPED_AFTER_MS : 0 };
    this.#beganAt = clock.elapsed();
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** The signals sent to it, in order. */
  get signals(): readonly string[] {
    return this.#signals;
  }

  /** Whether a fatal signal was sent and its death is not verified yet. */
  get dying(): boolean {
    return this.dyingSince !== undefined && this.end === undefined;
  }

  /** Verifies the death of a dying child. */
  verifyDeath(): void {
    if (!this.dying) throw new Bug(`the death of ${this.request.id} cannot be verified: it is not dying`);
    this.#verify();
  }

  /** Exits. */
  exit(code = 0): void {
    this.#requireRunning("exit");
    this.#end({ code, signal: undefined });
  }

  /** Ends by a signal that Belay did not send: a crash, or another process's kill. */
  die(signal: string): void {
    this.#requireRunning("die");
    this.#end({ code: undefined, signal });
  }

  say(text: string, stream: "stdout" | "stderr" = "stdout"): void {
    this.#requireRunning("say anything");
    this.output.say(text, stream, this.#clock.elapsed());
    if (stream === "stdout") this.request.hear?.(Buffer.from(text));
  }

  stop(givenMs = Number.POSITIVE_INFINITY): void {
    const graceMs = Math.min(givenMs, this.#graceMs);
    this.stops.push(graceMs);
    if (this.end !== undefined) return;
    if (this.stops.length === 1 && this.manner === "exited") this.#end({ code: 0, signal: undefined });
    else if (graceMs <= 0) this.#force();
    else if (this.#signals.length === 0) this.#terminate(graceMs);
    else if (this.#forcedAt !== undefined) this.#forceAfter(graceMs);
  }

  async write(data: string | Uint8Array): Promise<void> {
    if (this.end !== undefined || this.inputEnded) {
      throw new ControlError(
        "conflict",
        "This process cannot be written to: its input has ended, or was not asked for.",
      );
    }
    this.input += typeof data === "string" ? data : Buffer.from(data).toString("utf8");
  }

  endInput(): void {
    this.inputEnded = true;
  }

  async resize(size: { readonly columns: number; readonly rows: number }): Promise<void> {
    if (this.size === undefined) {
      throw new ControlError("invalid", "This process has no terminal, so it has no size.");
    }
    this.size = size;
  }

  #terminate(graceMs: number): void {
    this.#signals.push("SIGTERM");
    if (this.manner === "dies") this.#die({ code: undefined, signal: "SIGTERM" });
    else if (this.manner === "exits") this.#die({ code: 0, signal: undefined });
    // Belay cannot distinguish an unverified death from a child that ignores the signal: SIGKILL follows in both
    // cases.
    if (this.end === undefined) this.#forceAfter(graceMs);
  }

  /** Moves SIGKILL to an earlier time, never to a later one. */
  #forceAfter(graceMs: number): void {
    const at = this.#clock.elapsed() + graceMs;
    if (this.#forcedAt !== undefined && this.#forcedAt <= at) return;
    this.#forcedAt = at;
    this.#dispose();
    this.#dispose = this.#clock.after(graceMs, () => this.#force());
  }

  #force(): void {
    if (this.#signals.includes("SIGKILL")) return;
    this.#dispose();
    this.#forcedAt = undefined;
    this.#signals.push("SIGKILL");
    if (this.manner === "escapes") this.#afterVerification(() => this.#escape());
    else if (!this.dying) this.#die({ code: undefined, signal: "SIGKILL" });
  }

  /** The fatal signal was sent. */
  #die(exit: Pick<ChildEnd, "code" | "signal">): void {
    if (this.deathVerified !== "never" && this.deathVerified.afterMs <= 0) {
      this.#end(exit);
      return;
    }
    this.dyingSince = this.#clock.elapsed();
    this.#verify = () => this.#end(exit);
    this.#afterVerification(this.#verify);
  }

  #afterVerification(call: () => void): void {
    if (this.deathVerified === "never") return;
    this.#cancelVerification = this.#clock.after(this.deathVerified.afterMs, call);
  }

  #escape(): void {
    this.#end({ code: undefined, signal: undefined }, [this.pid]);
  }

  #end(exit: Pick<ChildEnd, "code" | "signal">, escaped: readonly number[] = []): void {
    this.#dispose();
    this.#cancelVerification();
    this.alive = escaped.length > 0;
    this.output.end();
    this.end = {
      ...exit,
      durationMs: this.#clock.elapsed() - this.#beganAt,
      stopped: this.#signals.length > 0,
      signals: [...this.#signals],
      left: 0,
      escaped,
    };
    this.#resolve(this.end);
  }

  #requireRunning(what: string): void {
    if (this.end !== undefined) throw new Bug(`${this.request.id} cannot ${what}: it has ended`);
    if (this.dying) throw new Bug(`${this.request.id} cannot ${what}: it is dying`);
  }
}

/** The same as for real processes. */
const ESCAPED_AFTER_MS = 10_000;

const ignore = (): void => {};
