// A data directory that is removed or renamed under the program that serves it, as `git clean -fdx` does.
import { existsSync, renameSync, rmSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "vitest";
import { EXIT_CODE } from "../../src/cli/shared/exit-code.ts";
import { AGENT, type Program, Shell } from "../fixtures/shell.ts";

const RESTORED = /socket and note were restored/;

const dataOf = ({ env }: Shell): string => env.BELAY_HOME ?? "";

/** A server with a run that lasts until it is stopped. */
async function served(): Promise<{ readonly shell: Shell; readonly server: Program; readonly run: Program }> {
  const shell = Shell.withDataElsewhere();
  const server = await shell.serve();
  const run = shell.start("run", "wait here");
  await run.sees(/here\n/);
  return { shell, server, run };
}

// Each test starts a server and several commands, on a machine that may be busy with other tests.
describe("a data directory that is removed under its server", { timeout: 60_000 }, () => {
  test("G28: the server is still found: ps and stop-all reach it, and a prompt is refused", async () => {
    const { shell, server } = await served();
    rmSync(dataOf(shell), { recursive: true });
    await server.sees(RESTORED);
    expect((await shell.belay("ps")).out).toMatch(/run_\w+ +run /);
    expect(await shell.belay("run", "say no")).toMatchObject({ code: EXIT_CODE.store_corrupt, out: "" });
    const stopped = await shell.belay("stop-all", "--yes");
    expect(stopped.err).toContain("The stop was carried out");
    server.signal("SIGTERM");
    await server.ended;
    expect(existsSync(`${dataOf(shell)}/belay.sock`)).toBe(false);
  });

  test("G28: a run without a server is still found", async () => {
    const shell = Shell.withDataElsewhere();
    const run = shell.start("run", "--agent", AGENT, "wait here");
    await run.sees(/here\n/);
    rmSync(dataOf(shell), { recursive: true });
    await run.sees(RESTORED);
    expect((await shell.belay("ps")).out).toMatch(/run_\w+ +run /);
    run.signal("SIGINT");
    run.signal("SIGTERM");
    await run.ended;
  });

  test("G26: a suspended server whose directory was taken over exits when it resumes, and stops its work", async () => {
    const { shell, server, run } = await served();
    server.signal("SIGSTOP");
    onTestFinished(() => server.signal("SIGCONT"));
    rmSync(dataOf(shell), { recursive: true });
    const second = await shell.serve();
    server.signal("SIGCONT");
    expect(await server.ended).toBe(EXIT_CODE.store_locked);
    expect(server.err).toContain("another program has taken over the data directory");
    expect((await shell.belay("ps")).code).toBe(0);
    run.signal("SIGTERM");
    second.signal("SIGTERM");
    expect(await second.ended).toBe(0);
  });
});

describe("a data directory that is renamed under its server", { timeout: 60_000 }, () => {
  test("G28: is not created again, and the server is found under the new name", async () => {
    const { shell, server } = await served();
    const away = `${dataOf(shell)}-away`;
    renameSync(dataOf(shell), away);
    onTestFinished(() => rmSync(away, { recursive: true, force: true }));
    expect((await shell.belay("ps", "--home", away)).out).toMatch(/run_\w+ +run /);
    expect((await shell.belay("stop-all", "--yes", "--home", away)).err).toContain("The stop was carried out");
    expect(existsSync(dataOf(shell))).toBe(false);
    renameSync(away, dataOf(shell));
    await expect.poll(async () => (await shell.belay("run", "say back")).out, { timeout: 30_000 }).toBe("back\n");
    server.signal("SIGTERM");
    expect(await server.ended).toBe(0);
  });
});
