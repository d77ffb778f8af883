// Stops listening to guesses once there have been too many.
//
// One count for the whole server, whoever asks. By address it would be worthless: behind a proxy all are one, on the
// loopback too, and whoever has many addresses has many counts. By the beginning of the token it would be the
// guesser's to choose. The price of one count is that a stranger can bring the lockout about at will; so it must cost
// the owner nothing. Hence valid tokens pass during a lockout, and only what would have been refused anyway is refused
// with 429 instead of 401. Nothing is lost by that: 256 bits are not guessed, at no speed. What the lockout is for is
// that a program with a wrong token is told to wait, and that the log says so once instead of ten thousand times.
//
// Invariants
// 1. Fewer than `TOKEN_FAILURES_MAX` moments are remembered: the last of them begins a lockout.
// 2. A failure during a lockout does not prolong it: else a program that never waits would keep all others out of
//    finding out that their token is the wrong one.
import type { Clock } from "../../ports/clock.ts";
import { LOCKOUT_MS, LOCKOUT_WINDOW_MS, TOKEN_FAILURES_MAX } from "../limits.ts";

export class Lockout {
  readonly #clock: Clock;
  /** When the last failures were, oldest first. */
  #failures: number[] = [];
  #until = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A wrong token came. Answers how long there is to wait, if that was one too many already. */
  failed(): number | undefined {
    const now = this.#clock.elapsed();
    if (now < this.#until) return this.#until - now;
    this.#failures = [...this.#failures.filter((at) => now - at < LOCKOUT_WINDOW_MS), now];
    if (this.#failures.length >= TOKEN_FAILURES_MAX) {
      this.#failures = [];
      this.#until = now + LOCKOUT_MS;
    }
    return undefined;
  }
}
