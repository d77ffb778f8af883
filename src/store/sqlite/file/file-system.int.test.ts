import fs, { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openFile } from "./open-file.ts";

const { statfsSync } = fs;

/** The file system type that every path has from now on. */
function says(answer: (path: string) => object): void {
  Object.assign(fs, { statfsSync: answer });
  syncBuiltinESMExports();
}

const saysType = (type: number): void => says((path) => ({ ...statfsSync(path), type }));

let directory = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-place-"));
});
afterEach(() => {
  says(statfsSync);
  delete process.env.BELAY_STORE_ANYWHERE;
  rmSync(directory, { recursive: true, force: true });
});

test.each([
  ["NFS", 0x6969],
  ["CIFS", 0xff534d42],
  // The same, as a 32-bit system reports it.
  ["CIFS", -11317950],
  ["SMB", 0xfe534d42],
  ["Ceph", 0x00c36400],
])(
  "D10: a database on %s is refused before anything is written there",
  { meta: { id: "store/network-file-system-refused" } },
  (name, type) => {
    saysType(type);
    expect(() => openFile(join(directory, "belay.db"))).toThrow(
      expect.objectContaining({ code: "invalid", message: expect.stringContaining(`share (${name})`) }),
    );
    expect(() => openFile(join(directory, "belay.db"))).toThrow(
      expect.objectContaining({ hint: expect.stringContaining("BELAY_STORE_ANYWHERE=1 opens it anyway") }),
    );
    expect(readdirSync(directory)).toEqual([]);
  },
);

test("D10: BELAY_STORE_ANYWHERE=1 opens it all the same", {
  meta: { id: "store/network-file-system-override" },
}, () => {
  saysType(0x6969);
  process.env.BELAY_STORE_ANYWHERE = "1";
  openFile(join(directory, "belay.db")).close();
});

test.each([
  ["what this machine says of its own disk", undefined],
  ["ext4", 0xef53],
  ["overlay", 0x794c7630],
  ["tmpfs", 0x01021994],
  ["9P, the disk of a sandbox", 0x01021997],
  ["a number that nobody knows", 7],
])("D10: %s is accepted", (_, type) => {
  if (type !== undefined) saysType(type);
  openFile(join(directory, "belay.db")).close();
});

test("D10: a file system that cannot be queried is accepted", () => {
  says(() => {
    throw new Error("not permitted");
  });
  openFile(join(directory, "belay.db")).close();
});
