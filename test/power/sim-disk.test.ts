// The disk of the power suite: what it forgets, and what it must not.
import { describe, expect, test } from "vitest";
import { type Chooser, SeededChooser } from "../../sim/chooser.ts";
import { SimDisk, type SimFile } from "./sim-disk.ts";

const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text));
const read = (disk: SimDisk, path: string): string | undefined => {
  const file = disk.file(path);
  return file === undefined ? undefined : Buffer.from(file.bytes.subarray(0, file.size)).toString("latin1");
};
const seeds = Array.from({ length: 60 }, (_, seed): Chooser => new SeededChooser(seed));

function made(content: string): { readonly disk: SimDisk; readonly file: SimFile } {
  const disk = new SimDisk();
  const file = disk.create("/disk/a");
  disk.write(file, bytes(content), 0);
  disk.sync(file);
  disk.syncDirectory();
  return { disk, file };
}

describe("what was synced", () => {
  test("is there after every cut", () => {
    for (const chooser of seeds) {
      const { disk } = made("kept");
      disk.cut();
      disk.restore(chooser);
      expect(read(disk, "/disk/a")).toBe("kept");
    }
  });

  test("is not undone by a cut in the middle of the next sync", () => {
    for (const chooser of seeds) {
      const { disk, file } = made("kept".padEnd(512, "."));
      disk.write(file, bytes("more"), 512);
      disk.cutAfter(1);
      expect(() => disk.sync(file)).toThrow("EIO");
      disk.restore(chooser);
      expect(read(disk, "/disk/a")).toMatch(/^kept/);
    }
  });
});

describe("what was not synced", () => {
  test("is sometimes kept, sometimes gone, sometimes torn, sector by sector", () => {
    const ends = new Set<string>();
    for (const chooser of seeds) {
      const { disk, file } = made("a".repeat(1_024));
      disk.write(file, bytes("b".repeat(1_024)), 0);
      disk.cut();
      disk.restore(chooser);
      const text = read(disk, "/disk/a") ?? "";
      ends.add(`${text[0]}${text[511]}${text[512]}${text[1_023]}`);
    }
    for (const end of ["aaaa", "bbbb", "aabb", "bbaa"]) expect(ends).toContain(end);
    expect([...ends].some((end) => end.startsWith("ba"))).toBe(true);
  });

  test("may be a name, which is there or not, whether or not its file was synced", () => {
    const ends = new Set<string | undefined>();
    for (const chooser of seeds) {
      const { disk } = made("a");
      const fresh = disk.create("/disk/b");
      disk.write(fresh, bytes("b"), 0);
      disk.sync(fresh);
      disk.cut();
      disk.restore(chooser);
      ends.add(read(disk, "/disk/b"));
    }
    expect(ends).toEqual(new Set(["b", undefined]));
  });

  test("may be a removal, after which the file is back", () => {
    const ends = new Set<string | undefined>();
    for (const chooser of seeds) {
      const { disk } = made("a");
      disk.remove("/disk/a");
      disk.cut();
      disk.restore(chooser);
      ends.add(read(disk, "/disk/a"));
    }
    expect(ends).toEqual(new Set(["a", undefined]));
  });

  test("may be a shorter end, which comes as a whole or not at all", () => {
    const ends = new Set<string>();
    for (const chooser of seeds) {
      const { disk, file } = made("a".repeat(2_048));
      disk.truncate(file, 0);
      disk.cut();
      disk.restore(chooser);
      ends.add(read(disk, "/disk/a") ?? "");
    }
    expect(ends).toEqual(new Set(["", "a".repeat(2_048)]));
  });
});

describe("without power", () => {
  test("nothing answers and nothing changes", () => {
    const { disk, file } = made("a");
    disk.cut();
    expect(() => disk.write(file, bytes("b"), 0)).toThrow("EIO");
    expect(() => disk.sync(file)).toThrow("EIO");
    expect(() => disk.file("/disk/a")).toThrow("EIO");
    disk.restore(new SeededChooser(1));
    expect(read(disk, "/disk/a")).toBe("a");
  });
});

test("a crash of the program alone loses nothing that was written", () => {
  const { disk, file } = made("a");
  disk.write(file, bytes("b"), 0);
  disk.kill();
  expect(read(disk, "/disk/a")).toBe("b");
});

test("a disk that lies keeps in doubt what it was told to sync", () => {
  const ends = new Set<string | undefined>();
  for (const chooser of seeds) {
    const disk = new SimDisk(["all"]);
    const file = disk.create("/disk/a");
    disk.write(file, bytes("a"), 0);
    disk.sync(file);
    disk.syncDirectory();
    disk.cut();
    disk.restore(chooser);
    ends.add(read(disk, "/disk/a"));
  }
  expect(ends).toContain(undefined);
  expect(ends).toContain("a");
});
