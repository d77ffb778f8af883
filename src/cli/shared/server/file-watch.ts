// Refuses to start with too low a limit on open files. Logs when so many files are open that the rest are reserved for
// stops, and when enough are available again.

import { ControlError } from "../../../core/errors.ts";
import type { Clock } from "../../../ports/clock.ts";
import { FILES_MIN, isShortOfFiles } from "../../../process/launch/file-limit.ts";
import { openFilesMax } from "../../../system/open-files.ts";
import type { Log } from "../../../telemetry/log.ts";

/** Throws before anything is opened: later, each step would fail with a different error. */
export function checkOpenFiles(max = openFilesMax()): void {
  if (max === undefined || max >= FILES_MIN) return;
  throw new ControlError("unavailable", `At most ${max} files may be open here, and a server needs ${FILES_MIN}.`, {
    hint: "Raise the limit on open files: ulimit -n, LimitNOFILE of systemd, or --ulimit nofile of docker run.",
  });
}

const POLL_MS = 2_000;

export class FileWatch {
  readonly #clock: Clock;
  readonly #log: Pick<Log, "info" | "warn">;
  readonly #self: string | undefined;
  #cancelTimer: () => void;
  #isShort = false;

  /** `self` is the directory of this program in /proc. */
  constructor(clock: Clock, log: Pick<Log, "info" | "warn">, self?: string) {
    this.#clock = clock;
    this.#log = log;
    this.#self = self;
    this.#cancelTimer = this.#later();
  }

  close(): void {
    this.#cancelTimer();
  }

  #later(): () => void {
    return this.#clock.after(POLL_MS, () => this.#poll(), "idle");
  }

  #poll(): void {
    const isShort = isShortOfFiles(0, this.#self);
    if (isShort && !this.#isShort) {
      const hint = "Raise the limit (ulimit -n, LimitNOFILE), or let idle clients go. Stops still work.";
      this.#log.warn("too many files are open: no command is started until some are closed", {
        ...{ openFilesMax: openFilesMax(this.#self), hint },
      });
    }
    if (!isShort && this.#isShort) this.#log.info("enough files can be opened again");
    this.#isShort = isShort;
    this.#cancelTimer = this.#later();
  }
}
