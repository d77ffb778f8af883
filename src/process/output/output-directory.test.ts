import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ProcessId } from "../../core/model/ids.ts";
import { OutputDirectory } from "./output-directory.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "belay-output-dir-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const id = (n: number): ProcessId => `proc_output.${n}`;

describe("the output directory", () => {
  test("keeps the newest, and removes the oldest beyond a number", async () => {
    const dir = join(home, "count");
    const outputs = new OutputDirectory(dir, { countMax: 3 });
    for (const n of [1, 2, 3, 4, 5]) {
      outputs.make(id(n));
      outputs.ended(id(n));
    }
    await outputs.settled();
    expect(readdirSync(dir).toSorted()).toEqual([id(3), id(4), id(5)]);
  });

  test("keeps at most a number of bytes", { meta: { id: "G33/kept-output-bounded" } }, async () => {
    const dir = join(home, "bytes");
    const outputs = new OutputDirectory(dir, { bytesMax: 250 });
    for (const n of [1, 2, 3]) {
      writeFileSync(join(outputs.make(id(n)), "all.log"), "x".repeat(100));
      outputs.ended(id(n));
    }
    await outputs.settled();
    expect(readdirSync(dir).toSorted()).toEqual([id(2), id(3)]);
  });

  test("never removes the output of a running process", async () => {
    const dir = join(home, "live");
    const outputs = new OutputDirectory(dir, { countMax: 1 });
    outputs.make(id(1));
    for (const n of [2, 3]) {
      outputs.make(id(n));
      outputs.ended(id(n));
    }
    await outputs.settled();
    expect(readdirSync(dir).toSorted()).toEqual([id(1), id(3)]);
  });

  test("never removes the output of a process that runs in another server", async () => {
    const dir = join(home, "shared");
    for (const n of [1, 2]) mkdirSync(join(dir, id(n)), { recursive: true });
    const outputs = new OutputDirectory(dir, { countMax: 0, isLive: (one) => one === id(1) });
    await outputs.settled();
    expect(readdirSync(dir)).toEqual([id(1)]);
  });

  test("counts the output of earlier servers, oldest first, and leaves other files alone", async () => {
    const dir = join(home, "earlier");
    for (const n of [1, 2, 3]) {
      mkdirSync(join(dir, id(n)), { recursive: true });
      utimesSync(join(dir, id(n)), 1_000 - n, 1_000 - n);
    }
    writeFileSync(join(dir, "unrelated"), "");
    const outputs = new OutputDirectory(dir, { countMax: 1 });
    await outputs.settled();
    expect(readdirSync(dir).toSorted()).toEqual([id(1), "unrelated"]);
  });

  test("never creates the same directory twice", () => {
    const outputs = new OutputDirectory(join(home, "twice"));
    outputs.make(id(1));
    expect(() => outputs.make(id(1))).toThrow(expect.objectContaining({ code: "conflict" }));
  });

  test("has no directory for a start that failed", () => {
    const dir = join(home, "nothing");
    const outputs = new OutputDirectory(dir);
    outputs.make(id(1));
    outputs.remove(id(1));
    expect(readdirSync(dir)).toEqual([]);
  });

  test("refuses a start if it cannot be created, with a hint", () => {
    const dir = join(home, "full");
    const outputs = new OutputDirectory(dir);
    rmSync(dir, { recursive: true });
    writeFileSync(dir, "");
    expect(() => outputs.make(id(1))).toThrow(
      expect.objectContaining({
        code: "not_started",
        message: `${id(1)} was not started: no directory for its output could be created.`,
        hint: `Make room, or make ${dir} writable.`,
      }),
    );
  });

  test("is created again if it was removed", () => {
    const dir = join(home, "removed");
    const outputs = new OutputDirectory(dir);
    rmSync(dir, { recursive: true });
    expect(readdirSync(outputs.make(id(1)))).toEqual([]);
  });

  test("is private to its owner", () => {
    const dir = join(home, "private");
    const outputs = new OutputDirectory(dir);
    expect([dir, outputs.make(id(1))].map((path) => statSync(path).mode & 0o777)).toEqual([0o700, 0o700]);
  });

  test("keeps exactly the maximum of bytes", async () => {
    const dir = join(home, "exact");
    const outputs = new OutputDirectory(dir, { bytesMax: 200 });
    for (const n of [1, 2]) {
      writeFileSync(join(outputs.make(id(n)), "all.log"), "x".repeat(100));
      outputs.ended(id(n));
    }
    await outputs.settled();
    expect(readdirSync(dir).toSorted()).toEqual([id(1), id(2)]);
  });

  test("does not count failed or unknown starts", async () => {
    const dir = join(home, "came");
    const outputs = new OutputDirectory(dir, { countMax: 1 });
    outputs.make(id(1));
    outputs.ended(id(1));
    outputs.make(id(2));
    outputs.remove(id(2));
    outputs.ended(id(2));
    outputs.ended(id(3));
    await outputs.settled();
    expect(readdirSync(dir)).toEqual([id(1)]);
    outputs.make(id(2));
    expect(readdirSync(dir).toSorted()).toEqual([id(1), id(2)]);
  });

  test("ignores entries that vanish while it counts", async () => {
    const dir = join(home, "vanishing");
    mkdirSync(dir);
    symlinkSync("nowhere", join(dir, id(1)));
    mkdirSync(join(dir, id(2)));
    const outputs = new OutputDirectory(dir, { countMax: 1 });
    await outputs.settled();
    expect(readdirSync(dir)).toEqual([id(2)]);
    symlinkSync("nowhere", join(dir, id(1)));
    writeFileSync(join(dir, id(2), "all.log"), "x".repeat(100));
    await new OutputDirectory(dir, { bytesMax: 50 }).settled();
    expect(readdirSync(dir)).toEqual([]);
  });
});
