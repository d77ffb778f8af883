// A named store that a program of Belay has open: commands with the same --store reach that program.
import { chmodSync, existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXIT_OUTCOME } from "../../src/cli/commands/run/run-exit.ts";
import { EXIT_CODE } from "../../src/cli/shared/exit-code.ts";
import { openSqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { AGENT, Shell } from "../fixtures/shell.ts";

const STORE = ["--store", "named.db"] as const;

describe("commands with --store", { timeout: 60_000 }, () => {
  test("G27: list and stop a run on that store; its socket is removed afterwards", async () => {
    const shell = new Shell();
    const run = shell.start("run", "--agent", AGENT, ...STORE, "wait here");
    await run.sees(/here\n/);
    expect((await shell.belay("ps", ...STORE)).out).toMatch(/run_\w+ +run +running/);
    expect((await shell.belay("stop-all", "--yes", ...STORE)).code).toBe(0);
    expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
    // No program has it open: the file itself is read.
    expect((await shell.belay("ps", ...STORE)).code).toBe(0);
    const after = shell.command("find", shell.home, "-name", "*.sock");
    await after.ended;
    expect(after.out).toBe("");
  });

  test("G27: connect to the server that has the store open", async () => {
    const shell = new Shell();
    await shell.serve();
    const run = shell.start("run", "wait here");
    await run.sees(/here\n/);
    expect((await shell.belay("ps", "--store", "belay.db")).out).toMatch(/run_\w+ +run +running/);
    expect((await shell.belay("stop-all", "--yes", "--store", join(shell.home, "belay.db"))).code).toBe(0);
    expect(await run.ended).toBe(EXIT_OUTCOME.cancelled);
  });

  test("name the program that has the store open, if it answers no commands", async () => {
    const shell = new Shell();
    const store = await openSqliteStore({ file: join(shell.home, "named.db") });
    const { code, err } = await shell.belay("ps", ...STORE);
    await store.close();
    expect(code).toBe(EXIT_CODE.store_locked);
    expect(err).toContain(`is in use by process ${process.pid}, which answers no commands`);
  });

  test("G39: do not connect to a socket in a directory that other users may access", async () => {
    const shell = new Shell();
    const run = shell.start("run", "--agent", AGENT, ...STORE, "wait here");
    await run.sees(/here\n/);
    const found = shell.command("find", shell.home, "-name", "belay.sock");
    const socket = await found.sees(/(\S+belay\.sock)/);
    expect(existsSync(socket)).toBe(true);
    chmodSync(dirname(socket), 0o755);
    expect((await shell.belay("ps", ...STORE)).code).toBe(EXIT_CODE.store_locked);
    chmodSync(dirname(socket), 0o700);
    expect((await shell.belay("ps", ...STORE)).code).toBe(0);
    run.signal("SIGINT");
    await run.ended;
  });
});
