// How much a running server logs. A change of the file that says so counts without a signal: at a terminal SIGHUP would
// end the server.
import { messageOf } from "../../../core/errors.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Level } from "../../../telemetry/log-line.ts";

/** How often the file is looked at, at most. It is looked at only when something is logged. */
const LOOK_MS = 1_000;

export interface LogLevelOptions {
  readonly clock: Pick<Clock, "elapsed">;
  /** Throws if what is written there is not a level. */
  readonly read: () => Level;
  /** The file cannot be used: the level stays as it was. Called once for each reason. */
  readonly onProblem: (error: unknown) => void;
}

export class LogLevel {
  readonly #options: LogLevelOptions;
  #level: Level;
  #lookAt: number;
  #problem = "";

  constructor(options: LogLevelOptions) {
    this.#options = options;
    this.#level = options.read();
    this.#lookAt = options.clock.elapsed() + LOOK_MS;
  }

  get current(): Level {
    const { clock, onProblem } = this.#options;
    const now = clock.elapsed();
    if (now < this.#lookAt) return this.#level;
    // Before the problem is reported: the report is logged, and asks for the level.
    this.#lookAt = now + LOOK_MS;
    try {
      this.reload();
    } catch (error) {
      if (messageOf(error) !== this.#problem) {
        this.#problem = messageOf(error);
        onProblem(error);
      }
    }
    return this.#level;
  }

  /** Reads it now. Throws if it cannot be used. */
  reload(): Level {
    this.#level = this.#options.read();
    this.#problem = "";
    return this.#level;
  }
}
