// The operator's log: single lines, as JSON or for a terminal, without secrets.
//
// Common loggers redact by the path of a field. But a secret also appears in the message of an error, in a URL or in
// base64. So it is redacted by value, in the finished line, immediately before the line is written.
//
// Invariants
// 1. Logging never throws and never waits.
// 2. Redaction is the last step: nothing is added to a line after it.
// 3. An entry is always one line, whatever it contains.
import type { Clock } from "../ports/clock.ts";
import { LineSink, type LineStream, standardError } from "./line-sink.ts";
import { type Fields, LEVELS, type Level, type LineForm, logLine } from "./log-line.ts";
import type { PreviewOptions } from "./preview.ts";
import type { Redact } from "./redactor.ts";

export interface LogOptions {
  readonly redact: Redact;
  readonly clock: Pick<Clock, "now">;
  /** The lowest level that is written. Default `info`. With `debug`, errors are written with their stacks. */
  readonly level?: Level;
  /** `json` for machines, `pretty` for people at a terminal. Default `json`. */
  readonly form?: LineForm;
  /** Default: stderr. */
  readonly stream?: LineStream;
}

const DROPPED = "log lines were dropped because their reader was too slow";

interface Setup {
  readonly options: LogOptions;
  readonly sink: LineSink;
}

/** Opens a log on a stream. */
export function openLog(options: LogOptions): Log {
  const sink = options.stream === undefined ? standardError() : new LineSink(options.stream);
  return new Log({ options, sink }, {});
}

export class Log {
  readonly #setup: Setup;
  readonly #fields: Fields;

  constructor(setup: Setup, fields: Fields) {
    this.#setup = setup;
    this.#fields = fields;
  }

  /** The format of its lines. */
  get form(): LineForm {
    return this.#setup.options.form ?? "json";
  }

  /** Lines that were dropped because the reader was slow or gone. */
  get dropped(): number {
    return this.#setup.sink.dropped;
  }

  debug(msg: string, fields?: Fields): void {
    this.#write("debug", msg, fields);
  }

  info(msg: string, fields?: Fields): void {
    this.#write("info", msg, fields);
  }

  warn(msg: string, fields?: Fields): void {
    this.#write("warn", msg, fields);
  }

  error(msg: string, fields?: Fields): void {
    this.#write("error", msg, fields);
  }

  /** Returns a logger that adds these fields to its lines. */
  child(fields: Fields): Log {
    return new Log(this.#setup, { ...this.#fields, ...fields });
  }

  #write(level: Level, msg: string, fields: Fields = {}): void {
    const { options, sink } = this.#setup;
    const { form } = this;
    const { redact, level: minimum = "info" } = options;
    if (LEVELS[level] < LEVELS[minimum]) return;
    try {
      const time = options.clock.now();
      const preview: PreviewOptions = { redact, stacks: minimum === "debug" ? "always" : "internal" };
      const dropped = sink.takeDropped();
      if (dropped > 0) sink.write(logLine({ level: "warn", time, msg: DROPPED, fields: { dropped } }, form, preview));
      sink.write(logLine({ level, time, msg, fields: { ...this.#fields, ...fields } }, form, preview));
    } catch {
      // A failure to format a line must not reach the code that logs.
      sink.write(form === "json" ? `{"level":${LEVELS[level]},"msg":"[a line that cannot be formatted]"}\n` : "\n");
    }
  }
}
