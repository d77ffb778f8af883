import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { openFile } from "./open-file.ts";

/** What the system says of the place, or nothing, if it is to say the truth. */
const said = vi.hoisted(() => ({ type: undefined as number | undefined, fails: false }));

vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  const statfsSync = (path: string) => {
    if (said.fails) throw new Error("not permitted");
    return { ...real.statfsSync(path), ...(said.type === undefined ? {} : { type: said.type }) };
  };
  return { ...real, statfsSync };
});

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-place-"));
});
afterEach(() => {
  said.type = undefined;
  said.fails = false;
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true, force: true });
});

it.each([
  ["NFS", 0x6969],
  ["CIFS", 0xff534d42],
  // The same, as a system of 32 bits tells it.
  ["CIFS", -11317950],
  ["SMB", 0xfe534d42],
  ["Ceph", 0x00c36400],
])("D10: a database on %s is refused before anything is put there", (name, type) => {
  said.type = type;
  expect(() => openFile(join(directory, "belay.db"))).toThrow(
    expect.objectContaining({ code: "invalid", message: expect.stringContaining(`share (${name})`) }),
  );
  expect(readdirSync(directory)).toEqual([]);
});

it("D10: whoever knows better opens it all the same", () => {
  said.type = 0x6969;
  vi.stubEnv("BELAY_STORE_ANYWHERE", "1");
  openFile(join(directory, "belay.db")).close();
});

it.each([
  ["what this machine says of its own disk", undefined],
  ["ext4", 0xef53],
  ["overlay", 0x794c7630],
  ["tmpfs", 0x01021994],
  ["9P, the disk of a sandbox", 0x01021997],
  ["a number that nobody knows", 7],
])("D10: %s is no obstacle", (_, type) => {
  said.type = type;
  openFile(join(directory, "belay.db")).close();
});

it("D10: a place that cannot be asked is no obstacle either", () => {
  said.fails = true;
  openFile(join(directory, "belay.db")).close();
});
