import { closeSync, existsSync, mkdtempSync, readdirSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { PipePool } from "./pipe-pool.ts";

const home = mkdtempSync(join(tmpdir(), "belay-pipes-"));
afterEach(() => rmSync(home, { recursive: true, force: true }));

describe("a pool of pipes", () => {
  test("has none before it is filled, and nobody waits for one", async () => {
    const pool = new PipePool(join(home, "empty"));
    expect(pool.fromChild()).toBeUndefined();
    const filled = pool.fill();
    pool.close();
    await filled;
  });

  test("closed while names are being made leaves no directory, and throws nothing", async () => {
    const pool = new PipePool(join(home, "hasty"));
    const filled = pool.fill();
    pool.close();
    await filled;
    expect(existsSync(join(home, "hasty"))).toBe(false);
  });

  test("gives pipes that carry what a child writes, to its end", async () => {
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

  test("gives pipes that carry what a child reads", async () => {
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
});
