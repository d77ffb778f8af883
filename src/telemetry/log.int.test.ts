import { spawn } from "node:child_process";
import { once } from "node:events";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { ControlError } from "../core/errors.ts";
import { Gate } from "../testing/gate.ts";
import { manualClock } from "../testing/manual-clock.ts";
import { LINE_CHARS_MAX, SINK_BYTES_MAX } from "./limits.ts";
import type { LineStream } from "./line-sink.ts";
import { type LogOptions, openLog } from "./log.ts";
import { redactor } from "./redactor.ts";

const SECRET = 'canary "1234" canary';

/** A stream that stores the lines written to it. */
function kept(): LineStream & { readonly lines: string[] } {
  const lines: string[] = [];
  return { lines, write: (line) => lines.push(line), on: () => undefined, writableLength: 0 };
}

function logOn(stream: LineStream, options: Partial<LogOptions> = {}) {
  return openLog({ redact: redactor([SECRET]), clock: manualClock(86_400_000 + 3_723_004), stream, ...options });
}

const parsed = (stream: { readonly lines: readonly string[] }): readonly Record<string, unknown>[] =>
  stream.lines.map((line) => JSON.parse(line));

describe("a line", () => {
  test("has the fields that log shippers expect: a numeric level, the time in milliseconds, msg", () => {
    const stream = kept();
    logOn(stream).info("listening", { port: 1 });
    expect(stream.lines).toEqual(['{"level":30,"time":90123004,"port":1,"msg":"listening"}\n']);
  });

  test("is written if its level is at least the configured one", () => {
    const stream = kept();
    const log = logOn(stream, { level: "warn" });
    log.debug("a");
    log.info("b");
    log.warn("c");
    log.error("d");
    expect(parsed(stream).map(({ level, msg }) => [level, msg])).toEqual([
      [40, "c"],
      [50, "d"],
    ]);
  });

  test("has the fields of its logger and of the parent loggers, and none can replace the line's own fields", () => {
    const stream = kept();
    logOn(stream).child({ a: 1, b: 1 }).child({ b: 2 }).info("x", { c: 3, level: 60, msg: "forged", time: 0 });
    expect(parsed(stream)[0]).toMatchObject({ a: 1, b: 2, c: 3, level: 30, msg: "x", time: 90123004 });
    expect(parsed(stream)[0]).toMatchObject({ field_level: 60, field_msg: "forged", field_time: 0 });
  });

  test("is one line, whatever it contains, and shows invisible characters as escapes", () => {
    for (const form of ["json", "pretty"] as const) {
      const stream = kept();
      logOn(stream, { form }).info('a\n{"level":30}\r\u001b[2J', { "k\ney": "b\n\u009b2J\u202e\u2028" });
      expect(stream.lines).toHaveLength(1);
      expect(stream.lines[0]).toMatch(/^[\x20-\x7e]*\n$/);
    }
  });

  test("is bounded and still valid JSON", () => {
    const stream = kept();
    const log = logOn(stream);
    log.info("\u0001".repeat(100_000), { a: 1 });
    log.info("much", Object.fromEntries(Array.from({ length: 500 }, (_, index) => [index, "x".repeat(1_000)])));
    for (const line of stream.lines) expect(line.length).toBeLessThanOrEqual(LINE_CHARS_MAX);
    expect(parsed(stream)[1]).toMatchObject({ msg: "much", cut: expect.stringContaining("too long") });
  });

  test("for a terminal is short", () => {
    const stream = kept();
    logOn(stream, { form: "pretty" }).warn("slow disk", { path: "/tmp/a", note: "two words", ms: 12 });
    expect(stream.lines).toEqual(['01:02:03.004 WARN  slow disk path=/tmp/a note="two words" ms=12\n']);
  });
});

describe("G35: the log contains no secret", () => {
  test.each(["json", "pretty"] as const)("as %s: not in the message, a field, a key, an error or its cause", (form) => {
    const stream = kept();
    const log = logOn(stream, { form, level: "debug" }).child({ child: SECRET });
    const cause = new Error(`cause ${SECRET}`);
    log.error(`msg ${SECRET}`, { [SECRET]: 1, list: [{ deep: SECRET }], err: new Error(SECRET, { cause }) });
    log.info("nested", { body: JSON.stringify({ key: SECRET }), url: `/?k=${encodeURIComponent(SECRET)}` });
    const all = stream.lines.join("");
    expect(all).not.toMatch(/canary|1234/);
    expect(all.match(/\[redacted\]/g)?.length).toBeGreaterThanOrEqual(7);
    if (form === "json") expect(parsed(stream)).toHaveLength(2);
  });

  test("even if redacting it breaks the JSON: then only the level is written", () => {
    const stream = kept();
    logOn(stream, { redact: redactor(["90123004"]) }).info("x", { a: 1 });
    expect(stream.lines[0]).not.toContain('"a"');
    expect(() => parsed(stream)).not.toThrow();
  });

  test("from the moment a secret is added to the redactor", () => {
    const stream = kept();
    const redact = redactor();
    const log = logOn(stream, { redact });
    redact.add("late-canary");
    log.info("late-canary");
    expect(parsed(stream)[0]).toMatchObject({ msg: "[redacted]" });
  });
});

describe("an error", () => {
  const cause = Object.assign(new Error("no space"), { code: "ENOSPC" });

  test("is logged with its code and its causes, without its stack", () => {
    const stream = kept();
    logOn(stream).error("failed", { err: new ControlError("store_full", "The disk is full.", { cause }) });
    expect(parsed(stream)[0]?.err).toEqual({
      type: "ControlError",
      message: "The disk is full.",
      code: "store_full",
      cause: { type: "Error", message: "no space", code: "ENOSPC" },
    });
  });

  test("is logged with its stack and its cause's stack if it is internal or the level is debug", () => {
    const stream = kept();
    logOn(stream).error("failed", { err: new ControlError("internal", "Oh.", { cause }) });
    logOn(stream, { level: "debug" }).error("failed", { err: cause });
    const [first, second] = parsed(stream);
    expect(first?.err).toMatchObject({ stack: expect.any(String), cause: { stack: expect.any(String) } });
    expect(second?.err).toMatchObject({ stack: expect.any(String) });
  });

  test("that is its own cause is repeated a few times only", () => {
    const stream = kept();
    const circle = new Error("round");
    circle.cause = circle;
    logOn(stream).error("x", { err: circle });
    expect(stream.lines[0]?.match(/round/g)).toHaveLength(6);
  });
});

describe("a failing stream", () => {
  test("that throws, and fields that throw, do not affect the caller", () => {
    const stream: LineStream = {
      write: () => {
        throw new Error("broken");
      },
      on: () => undefined,
      writableLength: 0,
    };
    const log = logOn(stream);
    log.info("a");
    log.info("b");
    expect(log.dropped).toBe(2);
    const good = kept();
    logOn(good).info("a", {
      get trap(): never {
        throw new Error("no");
      },
    });
    expect(parsed(good)).toEqual([{ level: 30, msg: "[a line that cannot be formatted]" }]);
  });

  test("G33: that is slow buffers a bounded amount, and gets the number of dropped lines later", {
    meta: { id: "G33/slow-log-stream-bounded" },
  }, () => {
    const lines: string[] = [];
    const stream = { lines, write: (line: string) => lines.push(line), on: () => undefined, writableLength: 0 };
    const log = logOn(stream);
    stream.writableLength = SINK_BYTES_MAX + 1;
    log.info("a");
    log.info("b");
    expect(lines).toEqual([]);
    stream.writableLength = 0;
    log.info("c");
    expect(parsed(stream)).toMatchObject([{ level: 40, dropped: 2 }, { msg: "c" }]);
    expect(log.dropped).toBe(2);
  });

  test("that has failed is not written to again, and the dropped lines are counted", async () => {
    const stream = new Writable({ write: (_, __, done) => done(new Error("EPIPE")) });
    const closed = new Gate();
    stream.on("close", () => closed.open());
    const log = logOn(stream);
    log.info("a");
    await closed.opened;
    log.info("b");
    expect(log.dropped).toBe(2);
  });

  test("does not end the program if it is stderr and its reader is gone", async () => {
    const here = (file: string): string => JSON.stringify(pathToFileURL(`${import.meta.dirname}/${file}`).href);
    const script = `
      import { openLog } from ${here("log.ts")};
      import { redactor } from ${here("redactor.ts")};
      const log = openLog({ redact: redactor(), clock: { now: () => 0 } });
      process.stdin.once("data", () => {
        log.info("into nothing");
        setImmediate(() => setImmediate(() => {
          log.info("again");
          process.stdout.write("alive " + log.dropped);
          process.exit(0);
        }));
      });
      process.stdout.write("ready ");
    `;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: "pipe" });
    const exited = once(child, "exit");
    await once(child.stdout, "readable");
    const gone = once(child.stderr, "close");
    child.stderr.destroy();
    await gone;
    child.stdin.end("go");
    expect(await text(child.stdout)).toBe("ready alive 2");
    expect(await exited).toEqual([0, null]);
  });
});
