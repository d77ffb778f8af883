import { expect, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { elsewhere, notesOnPlatform, processTableOn } from "./platform.ts";

test("processes are listed from /proc on Linux, by ps on a Mac, and nowhere else", () => {
  expect(processTableOn("linux", manualClock())?.kind).toBe("proc");
  expect([processTableOn("win32", manualClock()), processTableOn("freebsd", manualClock())]).toEqual([
    undefined,
    undefined,
  ]);
  expect(processTableOn("darwin", manualClock())?.kind).toBe("ps");
});

test("the notes of each platform have its limits and an alternative", () => {
  expect(notesOnPlatform("linux")).toEqual([]);
  expect(notesOnPlatform("darwin")).toHaveLength(3);
  expect(notesOnPlatform("darwin").at(-1)).toBe(`For a surer tier: ${elsewhere("darwin")}`);
  expect(notesOnPlatform("win32")).toEqual([expect.stringContaining("Use WSL2.")]);
  expect(notesOnPlatform("freebsd")).toEqual([
    "Processes are held on Linux, and experimentally on macOS. " +
      "Run the server on Linux: in a container, or in a virtual machine.",
  ]);
});
