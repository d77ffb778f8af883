import { expect, test } from "vitest";
import type { Status } from "../../../ports/explanation.ts";
import { sizeOf, statusLines } from "./status.ts";

const STATUS: Status = {
  ...{ phase: "open", worker: "wrk_1", startedAt: 0, trouble: undefined, modes: [], mode: undefined },
  load: { live: 1, waiting: 2, max: 1024, late: 0, processes: 3, dropped: 0, tier: undefined },
  store: { bytes: 48_300_000, freeBytes: 1_200, sessions: 12, events: 3_456 },
  retention: { removedEvents: 1_200, deletedSessions: 1, trouble: undefined },
  resources: { memoryBytes: 90_000_000, heapBytes: 20_000_000, loopDelayMs: 3.5, descriptors: 41 },
};

test("status shows the store, the work and the machine, one line each", () => {
  expect(statusLines(STATUS, 60_000)).toEqual([
    "state          open",
    "running since  1m",
    "work           1 run of 1024, 2 waiting, 3 processes",
    "store          48.3 MB, of which 1.2 KB unused",
    "sessions       12",
    "events         3456",
    "retention      1200 events and 1 session removed since the start",
    "memory         90.0 MB, of which 20.0 MB JavaScript heap",
    "loop delay     3.5 ms at worst in the last minute",
    "open files     41",
  ]);
});

test("status leaves out unknown values, and says why nothing can be recorded", () => {
  const resources = { ...STATUS.resources, loopDelayMs: undefined, descriptors: undefined };
  const unknown = { store: undefined, retention: undefined, resources };
  const lines = statusLines({ ...STATUS, ...unknown, trouble: "store_full" }, 60_000);
  expect(lines).toHaveLength(4);
  expect(lines[0]).toBe("state          open, nothing can be recorded: store_full");
});

test("status says why retention removes nothing", () => {
  const retention = { removedEvents: 0, deletedSessions: 0, trouble: "store_full" } as const;
  expect(statusLines({ ...STATUS, retention }, 0)).toContainEqual(
    expect.stringMatching(/^retention .*; removes nothing now: store_full$/),
  );
});

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1_000, "1.0 KB"],
  [2.5e9, "2.5 GB"],
  [9e15, "9000.0 TB"],
])("%i bytes are %s", (bytes, text) => {
  expect(sizeOf(bytes)).toBe(text);
});
