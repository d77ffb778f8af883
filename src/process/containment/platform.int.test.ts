import { expect, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { elsewhere, notesOnPlatform, processTableOn } from "./platform.ts";

test("processes are seen by /proc on Linux, and elsewhere but on a Mac not at all", () => {
  expect(processTableOn("linux", manualClock())?.kind).toBe("proc");
  expect([processTableOn("win32", manualClock()), processTableOn("freebsd", manualClock())]).toEqual([
    undefined,
    undefined,
  ]);
  expect(processTableOn("darwin", manualClock())?.kind).toBe("ps");
});

test("each platform is told what it cannot have, and where to go for it", () => {
  expect(notesOnPlatform("linux")).toEqual([]);
  expect(notesOnPlatform("darwin")).toHaveLength(3);
  expect(notesOnPlatform("darwin").at(-1)).toBe(`For a surer tier: ${elsewhere("darwin")}`);
  expect(notesOnPlatform("win32")).toEqual([expect.stringContaining("Use WSL2.")]);
  expect(notesOnPlatform("freebsd")).toEqual([
    "Processes are held on Linux, and experimentally on macOS. " +
      "Run the server on Linux: in a container, or in a virtual machine.",
  ]);
});
