// The log level of a running server. A change of its file takes effect without a signal: at a terminal SIGHUP would end
// the server.
import { messageOf } from "../../../core/errors.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Level } from "../../../telemetry/log-line.ts";

/** The file is read at most this often, and only when a line is logged. */
const POLL_MS = 1_000;

export interface LogLevelOptions {
  readonly clock: Pick<Clock, "elapsed">;
  /** Throws if the file does not contain a level. */
  readonly read: () => Level;
  /** Called once for each reason why the file cannot be used. The level stays as it was. */
  readonly onProblem: (error: unknown) => void;
}

export class LogLevel {
  readonly #options: LogLevelOptions;
  #level: Level;
  #nextReadAt: number;
  #problem = "";

  constructor(options: LogLevelOptions) {
    this.#options = options;
    this.#level = options.read();
    this.#nextReadAt = options.clock.elapsed() + POLL_MS;
  }

  get current(): Level {
    const { clock, onProblem } = this.#options;
    const now = clock.elapsed();
    if (now < this.#nextReadAt) return this.#level;
    // Set before the problem is reported: the report is logged, which reads the level.
    this.#nextReadAt = now + POLL_MS;
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

  /** Reads the file now. Throws if it cannot be used. */
  reload(): Level {
    this.#level = this.#options.read();
    this.#problem = "";
    return this.#level;
  }
}
