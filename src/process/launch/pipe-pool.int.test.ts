import { execFileSync } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { PipePool } from "./pipe-pool.ts";

const home = mkdtempSync(join(tmpdir(), "belay-pipes-"));
afterEach(() => rmSync(home, { recursive: true, force: true }));

describe("a pool of pipes", () => {
  test("is empty before it is filled, and never blocks", async () => {
    const pool = new PipePool(join(home, "empty"));
    expect(pool.fromChild()).toBeUndefined();
    const filled = pool.fill();
    pool.close();
    await filled;
  });

  test("closed while pipes are being made leaves no directory, and does not throw", async () => {
    const pool = new PipePool(join(home, "hasty"));
    const filled = pool.fill();
    pool.close();
    await filled;
    expect(existsSync(join(home, "hasty"))).toBe(false);
  });

  test("closed while pipes are being made removes the directory only afterwards", async () => {
    const [bin, go, dir] = [join(home, "bin"), join(home, "go"), join(home, "slow")];
    mkdirSync(bin, { recursive: true });
    execFileSync("mkfifo", [go]);
    // Makes nothing until the test releases it.
    writeFileSync(join(bin, "mkfifo"), `#!/bin/sh\nread go < ${go}\n`, { mode: 0o755 });
    // For both ends, so that opening it never blocks.
    const gate = openSync(go, "r+");
    const { PATH } = process.env;
    process.env.PATH = `${bin}:${PATH}`;
    try {
      const pool = new PipePool(dir);
      const filled = pool.fill();
      pool.close();
      expect(existsSync(dir)).toBe(true);
      writeSync(gate, "on\n");
      await filled;
      expect(existsSync(dir)).toBe(false);
    } finally {
      process.env.PATH = PATH;
      closeSync(gate);
    }
  });

  test("provides pipes that carry a child's output to its end", async () => {
    const pool = new PipePool(join(home, "from"));
    await pool.fill();
    const names = readdirSync(join(home, "from")).length;
    const pipe = pool.fromChild();
    if (pipe === undefined) throw new Error("There is no pipe.");
    expect(readdirSync(join(home, "from"))).toHaveLength(names - 1);
    writeSync(pipe.fd, "hello");
    closeSync(pipe.fd);
    expect(Buffer.concat(await pipe.stream.toArray()).toString()).toBe("hello");
    pool.close();
  });

  test("provides pipes that carry a child's input", async () => {
    const pool = new PipePool(join(home, "to"));
    await pool.fill();
    const pipe = pool.toChild();
    if (pipe === undefined) throw new Error("There is no pipe.");
    await new Promise<void>((resolve) => pipe.stream.end("hello", resolve));
    const bytes = Buffer.alloc(10);
    expect(bytes.toString("utf8", 0, readSync(pipe.fd, bytes))).toBe("hello");
    await new Promise<void>((resolve) => (pipe.stream.closed ? resolve() : pipe.stream.once("close", resolve)));
    expect(readSync(pipe.fd, bytes)).toBe(0);
    closeSync(pipe.fd);
    pool.close();
  });

  test("leaves nothing behind", async () => {
    const pool = new PipePool(join(home, "closed"));
    await pool.fill();
    pool.close();
    expect(readdirSync(home)).not.toContain("closed");
  });

  test("that is bare stays empty: such a child gets Node's own pipes", async () => {
    const pool = new PipePool(join(home, "bare"), true);
    await pool.fill();
    expect([pool.fromChild(), pool.toChild(), readdirSync(join(home, "bare"))]).toEqual([undefined, undefined, []]);
    pool.close();
    expect(existsSync(join(home, "bare"))).toBe(false);
    pool.close();
  });

  test("makes more before it runs out, under new names, and none once it is closed", async () => {
    const dir = join(home, "more");
    mkdirSync(join(dir, "left over"), { recursive: true });
    const pool = new PipePool(dir);
    expect(readdirSync(dir)).toEqual([]);
    await pool.fill();
    const first = readdirSync(dir);
    const taken = Array.from({ length: first.length - 12 }, () => pool.fromChild());
    expect(readdirSync(dir)).toHaveLength(12);
    taken.push(pool.fromChild());
    await expect.poll(() => readdirSync(dir).length).toBeGreaterThan(12);
    await pool.fill();
    const more = readdirSync(dir);
    expect(more.filter((name) => !first.includes(name)).length).toBeGreaterThanOrEqual(more.length - 11);
    pool.close();
    expect(pool.fromChild()).toBeUndefined();
    for (const pipe of taken) {
      pipe?.stream.destroy();
      closeSync(pipe?.fd ?? -1);
    }
    expect(existsSync(dir)).toBe(false);
  });

  test("keeps only the two ends of a pipe open, and none if the pipe cannot be opened", async () => {
    const dir = join(home, "ends");
    const pool = new PipePool(dir);
    await pool.fill();
    const openFiles = (): number => readdirSync("/proc/self/fd").length;
    const before = openFiles();
    const pipes = [pool.toChild(), pool.fromChild()];
    expect(openFiles()).toBe(before + 4);
    rmSync(dir, { recursive: true });
    expect([pool.toChild(), pool.fromChild()]).toEqual([undefined, undefined]);
    expect(openFiles()).toBe(before + 4);
    for (const pipe of pipes) {
      if (pipe === undefined) throw new Error("There is no pipe.");
      closeSync(pipe.fd);
      pipe.stream.destroy();
      await once(pipe.stream, "close");
    }
    expect(openFiles()).toBe(before);
    pool.close();
  });
});
