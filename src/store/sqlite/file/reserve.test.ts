import fs, { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ROOM_BYTES_MIN } from "../limits.ts";
import { Reserve } from "./reserve.ts";

const { rmSync: remove, statfsSync, writeFileSync: write } = fs;

/** What the system does from now on, instead of its default. */
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
  it("is written in bytes that every file system stores", () => {
    expect(new Reserve(path, 1_000).hasRoom()).toBe(true);
    const bytes = readFileSync(path);
    expect(bytes).toHaveLength(1_000);
    expect(bytes.every((byte) => byte !== 0)).toBe(true);
  });

  it("of an earlier start is used as it is, even when there is no space to write it again", () => {
    new Reserve(path, 1_000);
    system({ writeFileSync: fails("ENOSPC") });
    const reserve = new Reserve(path, 1_000);
    expect(reserve.hasRoom()).toBe(true);
    expect(reserve.spend()).toBe(true);
  });

  it("that another program has deleted counts as released", () => {
    const reserve = new Reserve(path, 1_000);
    rmSync(path);
    expect(reserve.spend()).toBe(true);
  });

  it("of another size is written again", () => {
    writeFileSync(path, "short");
    new Reserve(path, 1_000);
    expect(readFileSync(path)).toHaveLength(1_000);
  });

  it("G28: is released once, and there is no space for new things until it is reserved again", () => {
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

  it("G28: that cannot be removed is not released, and is still held", () => {
    const reserve = new Reserve(path, 1_000);
    system({ rmSync: fails("EIO") });
    expect(reserve.spend()).toBe(false);
    expect(reserve.hasRoom()).toBe(true);
    system({});
    expect(reserve.spend()).toBe(true);
  });

  it.each(["ENOSPC", "EDQUOT"])(
    "G28: that does not fit (%s) leaves nothing behind, and no space for new things",
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

  it("that cannot be created on this file system prevents no writes", () => {
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

  it("G28: is tight with less space than something new may need", () => {
    const reserve = new Reserve(path, 1_000);
    expect(reserve.isTight()).toBe(false);
    says({ bavail: ROOM_BYTES_MIN / 1024 - 1, bsize: 1024, blocks: 1_000_000 });
    expect(reserve.isTight()).toBe(true);
    says({ bavail: ROOM_BYTES_MIN / 1024, bsize: 1024, blocks: 1_000_000 });
    expect(reserve.isTight()).toBe(false);
  });

  it("that does not report its size, or cannot be queried, has enough space", () => {
    const reserve = new Reserve(path, 1_000);
    says({ bavail: 0, bsize: 4096, blocks: 0 });
    expect(reserve.isTight()).toBe(false);
    system({ statfsSync: fails("ENOSYS") });
    expect(reserve.isTight()).toBe(false);
  });
});
