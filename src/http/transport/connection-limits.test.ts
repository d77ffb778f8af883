import { expect, test } from "vitest";
import { connectionLimits } from "./connection-limits.ts";

test.each([
  ["tcp", 1_024, 1_048_576, 1_024, 64],
  ["socket", 1_024, 1_048_576, 1_024, 64],
  ["tcp", 1_024, 256, 123, 17],
  ["socket", 1_024, 256, 41, 5],
  ["tcp", 100, 256, 100, 17],
  ["tcp", 1_024, 96, 18, 2],
  ["socket", 1_024, 96, 4, 2],
  ["tcp", 1_024, 64, 4, 2],
] as const)("G40: a %s listener for %d connections takes, with %d files, %d and %d for stops", (...row) => {
  const [via, wanted, filesMax, connectionsMax, connectionsForStops] = row;
  expect(connectionLimits(via, wanted, filesMax)).toEqual({ connectionsMax, connectionsForStops });
});

test("G40: both listeners together leave enough files for the rest of the program", () => {
  for (let filesMax = 94; filesMax < 4_096; filesMax += 1) {
    const all = (["tcp", "socket"] as const).map((via) => connectionLimits(via, undefined, filesMax));
    const files = all.reduce((sum, one) => sum + one.connectionsMax + one.connectionsForStops, 0);
    expect(files).toBeLessThanOrEqual(filesMax - 70);
  }
});
