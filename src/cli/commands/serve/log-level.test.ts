import { expect, test } from "vitest";
import { ControlError } from "../../../core/errors.ts";
import type { Level } from "../../../telemetry/log-line.ts";
import { manualClock } from "../../../testing/manual-clock.ts";
import { LogLevel } from "./log-level.ts";

function written(first: Level) {
  const clock = manualClock();
  const problems: string[] = [];
  const file = { word: first as string };
  const read = (): Level => {
    if (file.word === "loud") throw new ControlError("invalid", "There is no log level.");
    return file.word as Level;
  };
  const level: LogLevel = new LogLevel({
    ...{ clock, read },
    onProblem: () => problems.push(`still ${level.current}`),
  });
  return { clock, file, level, problems };
}

test("a changed log level takes effect within a second, without a signal", async () => {
  const { clock, file, level } = written("info");
  file.word = "debug";
  expect(level.current).toBe("info");
  await clock.advance(1_000);
  expect(level.current).toBe("debug");
});

test("an invalid log level is reported once, and the old one stays; reload() throws", async () => {
  const { clock, file, level, problems } = written("info");
  file.word = "loud";
  await clock.advance(1_000);
  expect(level.current).toBe("info");
  await clock.advance(1_000);
  expect(level.current).toBe("info");
  expect(problems).toEqual(["still info"]);
  expect(() => level.reload()).toThrow("There is no log level.");
});
