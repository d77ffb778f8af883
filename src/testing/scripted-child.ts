// One process in the hands of the test: no operating system, the same promises.
//
// Invariants
// 1. It ends when the test says so, or when it is stopped in the way its manner says; never by itself.
// 2. `stopped` is true exactly if a signal went out before it had ended.
// 3. Between a fatal signal and the verification of its death it is dying: it still exists, and `ended` is pending.
import { Bug } from "../core/bug.ts";
import { ControlError } from "../core/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Child, ChildEnd, Mechanism, Profile, SpawnRequest, Tier } from "../ports/spawner.ts";
import { ScriptedOutput } from "./scripted-output.ts";

/**
 * What it does when it is stopped.
 * `dies`: of the signal, whichever it is. `ignores`: the polite one; only force ends it. `exits`: with code 0, in the
 * very tick in which it is asked, after the signal. `exited`: with code 0, just before the signal was sent. `escapes`:
 * not at all; it is given up as escaped.
 */
export type ExitBehavior = "dies" | "ignores" | "exits" | "exited" | "escapes";

/**
 * When the death of a stopped child is verified. The default is the tick in which it gets the signal it dies of.
 * `{ afterMs }`: this much later, as when the kernel takes 700 ms to free the memory of a large process. `never`: not
 * at all, although SIGKILL was sent too; `ended` settles only if the test calls `verifyDeath()`.
 * Combines with every manner. One that ignores the polite signal dies of SIGKILL, so the time counts from there; one
 * that escapes is given up this long after SIGKILL (default 10 s).
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
  /** Each time it was asked to stop: with which grace. */
  readonly stops: number[] = [];
  /** Whether anything of it exists. A dying child exists until its death is verified, an escaped one for ever. */
  alive = true;
  /** When it got the signal it dies of, on the clock that does not jump, if its death was not verified at once. */
  dyingSince: number | undefined = undefined;
  /** How it ended, once it has. */
  end: ChildEnd | undefined = undefined;
  /** What was written to it, whether that has ended, and the size of its terminal. */
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

  /** What was sent to it, in order. */
  get signals(): readonly string[] {
    return this.#signals;
  }

  /** Whether it got a signal it dies of, and its death is not verified yet. */
  get dying(): boolean {
    return this.dyingSince !== undefined && this.end === undefined;
  }

  /** Verifies the death of a dying child, now. */
  verifyDeath(): void {
    if (!this.dying) throw new Bug(`the death of ${this.request.id} cannot be verified: it is not dying`);
    this.#verify();
  }

  /** Ends by itself. */
  exit(code = 0): void {
    this.#mustLive("exit");
    this.#end({ code, signal: undefined });
  }

  /** Is ended by a signal that is not ours: it crashed, or somebody else has sent one. */
  die(signal: string): void {
    this.#mustLive("die");
    this.#end({ code: undefined, signal });
  }

  say(text: string, stream: "stdout" | "stderr" = "stdout"): void {
    this.#mustLive("say anything");
    this.output.say(text, stream, this.#clock.elapsed());
    if (stream === "stdout") this.request.hear?.(Buffer.from(text));
  }

  stop(givenMs = Number.POSITIVE_INFINITY): void {
    const graceMs = Math.min(givenMs, this.#graceMs);
    this.stops.push(graceMs);
    if (this.end !== undefined) return;
    if (this.stops.length === 1 && this.manner === "exited") this.#end({ code: 0, signal: undefined });
    else if (graceMs <= 0) this.#force();
    else if (this.#signals.length === 0) this.#ask(graceMs);
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

  #ask(graceMs: number): void {
    this.#signals.push("SIGTERM");
    if (this.manner === "dies") this.#die({ code: undefined, signal: "SIGTERM" });
    else if (this.manner === "exits") this.#die({ code: 0, signal: undefined });
    // A death that is not verified cannot be told from a child that ignores the signal: force follows in both cases.
    if (this.end === undefined) this.#forceAfter(graceMs);
  }

  /** Sooner, if that was planned for later. */
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

  /** Has got the signal it dies of. */
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

  #mustLive(what: string): void {
    if (this.end !== undefined) throw new Bug(`${this.request.id} cannot ${what}: it has ended`);
    if (this.dying) throw new Bug(`${this.request.id} cannot ${what}: it is dying`);
  }
}

/** As with real processes. */
const ESCAPED_AFTER_MS = 10_000;

const ignore = (): void => {};
