import fs, { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ROOM_BYTES_MIN } from "../limits.ts";
import { Reserve } from "./reserve.ts";

const { rmSync: remove, statfsSync, writeFileSync: write } = fs;

/** What the system does from now on, instead of what it would. */
function system(instead: Partial<Record<"rmSync" | "statfsSync" | "writeFileSync", () => unknown>>): void {
  Object.assign(fs, { rmSync: remove, statfsSync, writeFileSync: write, ...instead });
  syncBuiltinESMExports();
}

const fails = (code: string) => (): never => {
  throw Object.assign(new Error(code), { code });
};

let directory = "";
let path = "";
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "belay-reserve-"));
  path = join(directory, "belay.db.reserve");
});
afterEach(() => {
  system({});
  rmSync(directory, { recursive: true, force: true });
});

describe("the reserve", () => {
  it("is put aside, in bytes that no file system stores as nothing", () => {
    expect(new Reserve(path, 1_000).hasRoom()).toBe(true);
    const bytes = readFileSync(path);
    expect(bytes).toHaveLength(1_000);
    expect(bytes.every((byte) => byte !== 0)).toBe(true);
  });

  it("of an earlier life is taken over as it is, also when there is no room to write it again", () => {
    new Reserve(path, 1_000);
    system({ writeFileSync: fails("ENOSPC") });
    const reserve = new Reserve(path, 1_000);
    expect(reserve.hasRoom()).toBe(true);
    expect(reserve.spend()).toBe(true);
  });

  it("that somebody has deleted is room already, and counts as given back", () => {
    const reserve = new Reserve(path, 1_000);
    rmSync(path);
    expect(reserve.spend()).toBe(true);
  });

  it("of another size is put aside anew", () => {
    writeFileSync(path, "short");
    new Reserve(path, 1_000);
    expect(readFileSync(path)).toHaveLength(1_000);
  });

  it("G28: is given back once, and there is no room for new things until it could be put aside again", () => {
    const reserve = new Reserve(path, 1_000);
    expect(reserve.spend()).toBe(true);
    expect(existsSync(path)).toBe(false);
    expect(reserve.spend()).toBe(false);
    system({ writeFileSync: fails("ENOSPC") });
    expect(reserve.hasRoom()).toBe(false);
    expect(reserve.hasRoom()).toBe(false);
    system({});
    expect(reserve.hasRoom()).toBe(true);
    expect(readFileSync(path)).toHaveLength(1_000);
    expect(reserve.spend()).toBe(true);
  });

  it("G28: that the disk does not let go of is not given back, and is still held", () => {
    const reserve = new Reserve(path, 1_000);
    system({ rmSync: fails("EIO") });
    expect(reserve.spend()).toBe(false);
    expect(reserve.hasRoom()).toBe(true);
    system({});
    expect(reserve.spend()).toBe(true);
  });

  it.each(["ENOSPC", "EDQUOT"])(
    "G28: that does not fit (%s) leaves nothing behind, and no room for new things",
    (code) => {
      system({
        writeFileSync: () => {
          write(path, "half of it");
          return fails(code)();
        },
      });
      const reserve = new Reserve(path, 1_000);
      expect(existsSync(path)).toBe(false);
      expect(reserve.hasRoom()).toBe(false);
      expect(reserve.spend()).toBe(false);
    },
  );

  it("that cannot be had here at all keeps nobody from writing", () => {
    for (const instead of [
      fails("EACCES"),
      () => {
        throw "no error at all";
      },
    ]) {
      system({ writeFileSync: instead });
      const reserve = new Reserve(path, 1_000);
      expect(reserve.hasRoom()).toBe(true);
      expect(reserve.spend()).toBe(false);
      system({ writeFileSync: fails("ENOSPC") });
      expect(reserve.hasRoom()).toBe(true);
    }
    system({});
    mkdirSync(path);
    expect(new Reserve(path, 1_000).hasRoom()).toBe(true);
  });
});

describe("a disk", () => {
  const says = (answer: object) => system({ statfsSync: () => answer });

  it("G28: is tight with less room than something new may need", () => {
    const reserve = new Reserve(path, 1_000);
    expect(reserve.isTight()).toBe(false);
    says({ bavail: ROOM_BYTES_MIN / 1024 - 1, bsize: 1024, blocks: 1_000_000 });
    expect(reserve.isTight()).toBe(true);
    says({ bavail: ROOM_BYTES_MIN / 1024, bsize: 1024, blocks: 1_000_000 });
    expect(reserve.isTight()).toBe(false);
  });

  it("that does not say how large it is, or cannot be asked, has enough", () => {
    const reserve = new Reserve(path, 1_000);
    says({ bavail: 0, bsize: 4096, blocks: 0 });
    expect(reserve.isTight()).toBe(false);
    system({ statfsSync: fails("ENOSYS") });
    expect(reserve.isTight()).toBe(false);
  });
});
