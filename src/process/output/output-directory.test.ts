import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ProcessId } from "../../core/model/ids.ts";
import { OutputDirectory } from "./output-directory.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "belay-shelf-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const id = (n: number): ProcessId => `proc_shelf.${n}`;

describe("the shelf of outputs", () => {
  test("keeps the newest, and removes the oldest beyond a number", async () => {
    const dir = join(home, "count");
    const shelf = new OutputDirectory(dir, { countMax: 3 });
    for (const n of [1, 2, 3, 4, 5]) {
      shelf.make(id(n));
      shelf.ended(id(n));
    }
    await shelf.settled();
    expect(readdirSync(dir).toSorted()).toEqual([id(3), id(4), id(5)]);
  });

  test("keeps to a number of bytes", { meta: { id: "G33/kept-output-bounded" } }, async () => {
    const dir = join(home, "bytes");
    const shelf = new OutputDirectory(dir, { bytesMax: 250 });
    for (const n of [1, 2, 3]) {
      writeFileSync(join(shelf.make(id(n)), "all.log"), "x".repeat(100));
      shelf.ended(id(n));
    }
    await shelf.settled();
    expect(readdirSync(dir).toSorted()).toEqual([id(2), id(3)]);
  });

  test("never removes what is going on", async () => {
    const dir = join(home, "live");
    const shelf = new OutputDirectory(dir, { countMax: 1 });
    shelf.make(id(1));
    for (const n of [2, 3]) {
      shelf.make(id(n));
      shelf.ended(id(n));
    }
    await shelf.settled();
    expect(readdirSync(dir).toSorted()).toEqual([id(1), id(3)]);
  });

  test("never removes what is going on in another server that shares the directory", async () => {
    const dir = join(home, "shared");
    for (const n of [1, 2]) mkdirSync(join(dir, id(n)), { recursive: true });
    const shelf = new OutputDirectory(dir, { countMax: 0, isLive: (one) => one === id(1) });
    await shelf.settled();
    expect(readdirSync(dir)).toEqual([id(1)]);
  });

  test("counts what an earlier life has left, oldest first, and leaves what is not its own", async () => {
    const dir = join(home, "earlier");
    for (const n of [1, 2, 3]) {
      mkdirSync(join(dir, id(n)), { recursive: true });
      utimesSync(join(dir, id(n)), 1_000 - n, 1_000 - n);
    }
    writeFileSync(join(dir, "somebody's"), "");
    const shelf = new OutputDirectory(dir, { countMax: 1 });
    await shelf.settled();
    expect(readdirSync(dir).toSorted()).toEqual([id(1), "somebody's"]);
  });

  test("gives no directory twice", () => {
    const shelf = new OutputDirectory(join(home, "twice"));
    shelf.make(id(1));
    expect(() => shelf.make(id(1))).toThrow(expect.objectContaining({ code: "conflict" }));
  });

  test("a start that came to nothing leaves no directory", () => {
    const dir = join(home, "nothing");
    const shelf = new OutputDirectory(dir);
    shelf.make(id(1));
    shelf.remove(id(1));
    expect(readdirSync(dir)).toEqual([]);
  });

  test("has no place where none can be made, and says what to do", () => {
    const dir = join(home, "full");
    const shelf = new OutputDirectory(dir);
    rmSync(dir, { recursive: true });
    writeFileSync(dir, "");
    expect(() => shelf.make(id(1))).toThrow(
      expect.objectContaining({
        code: "not_started",
        message: `${id(1)} was not started: there is no place for its output.`,
        hint: `Make room, or make ${dir} writable.`,
      }),
    );
  });

  test("that was removed with everything in it is made again", () => {
    const dir = join(home, "removed");
    const shelf = new OutputDirectory(dir);
    rmSync(dir, { recursive: true });
    expect(readdirSync(shelf.make(id(1)))).toEqual([]);
  });

  test("is for nobody else to read", () => {
    const dir = join(home, "private");
    const shelf = new OutputDirectory(dir);
    expect([dir, shelf.make(id(1))].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700]);
  });

  test("keeps exactly as many bytes as it may", async () => {
    const dir = join(home, "exact");
    const shelf = new OutputDirectory(dir, { bytesMax: 200 });
    for (const n of [1, 2]) {
      writeFileSync(join(shelf.make(id(n)), "all.log"), "x".repeat(100));
      shelf.ended(id(n));
    }
    await shelf.settled();
    expect(readdirSync(dir).toSorted()).toEqual([id(1), id(2)]);
  });

  test("does not count what came to nothing, nor what was never begun", async () => {
    const dir = join(home, "came");
    const shelf = new OutputDirectory(dir, { countMax: 1 });
    shelf.make(id(1));
    shelf.ended(id(1));
    shelf.make(id(2));
    shelf.remove(id(2));
    shelf.ended(id(2));
    shelf.ended(id(3));
    await shelf.settled();
    expect(readdirSync(dir)).toEqual([id(1)]);
    shelf.make(id(2));
    expect(readdirSync(dir).toSorted()).toEqual([id(1), id(2)]);
  });

  test("passes over what vanishes while it counts", async () => {
    const dir = join(home, "vanishing");
    mkdirSync(dir);
    symlinkSync("nowhere", join(dir, id(1)));
    mkdirSync(join(dir, id(2)));
    const shelf = new OutputDirectory(dir, { countMax: 1 });
    await shelf.settled();
    expect(readdirSync(dir)).toEqual([id(2)]);
    symlinkSync("nowhere", join(dir, id(1)));
    writeFileSync(join(dir, id(2), "all.log"), "x".repeat(100));
    await new OutputDirectory(dir, { bytesMax: 50 }).settled();
    expect(readdirSync(dir)).toEqual([]);
  });
});
