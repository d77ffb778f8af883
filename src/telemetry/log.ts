// The operator's log: one line for each thing worth telling, as JSON or for a terminal, and never a secret in it.
//
// Ready-made loggers redact by the path of a field. A secret does not keep to its field: it is in the message of an
// error, in a URL, in base64. So it is taken out by its value, of the finished line, as the last thing before it goes.
//
// Invariants
// 1. Nothing here throws, and nothing waits.
// 2. Redaction is the last step: nothing is put into a line after it.
// 3. A line is one line, whatever it tells.
import type { Clock } from "../ports/clock.ts";
import { LineSink, type LineStream, standardError } from "./line-sink.ts";
import { type Fields, LEVELS, type Level, type LineForm, logLine } from "./log-line.ts";
import type { PreviewOptions } from "./preview.ts";
import type { Redact } from "./redactor.ts";

export interface LogOptions {
  readonly redact: Redact;
  readonly clock: Pick<Clock, "now">;
  /** The least that is told. Default `info`. With `debug`, errors are told with their stacks. */
  readonly level?: Level;
  /** `json` for machines, `pretty` for a person at a terminal. Default `json`. */
  readonly form?: LineForm;
  /** Default standard error. */
  readonly stream?: LineStream;
}

const DROPPED = "lines of this log were dropped: its reader was too slow";

interface Setup {
  readonly options: LogOptions;
  readonly sink: LineSink;
}

/** A log on a stream. */
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

  /** How its lines look. */
  get form(): LineForm {
    return this.#setup.options.form ?? "json";
  }

  /** Lines that went nowhere, because the reader was slow or gone. */
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

  /** The same log; its lines carry these fields too. */
  child(fields: Fields): Log {
    return new Log(this.#setup, { ...this.#fields, ...fields });
  }

  #write(level: Level, msg: string, fields: Fields = {}): void {
    const { options, sink } = this.#setup;
    const { form } = this;
    const { redact, level: least = "info" } = options;
    if (LEVELS[level] < LEVELS[least]) return;
    try {
      const time = options.clock.now();
      const how: PreviewOptions = { redact, stacks: least === "debug" ? "always" : "internal" };
      const dropped = sink.takeDropped();
      if (dropped > 0) sink.write(logLine({ level: "warn", time, msg: DROPPED, fields: { dropped } }, form, how));
      sink.write(logLine({ level, time, msg, fields: { ...this.#fields, ...fields } }, form, how));
    } catch {
      // Whatever it was, whoever wanted to tell something has other things to do.
      sink.write(form === "json" ? `{"level":${LEVELS[level]},"msg":"[a line that cannot be told]"}\n` : "\n");
    }
  }
}
