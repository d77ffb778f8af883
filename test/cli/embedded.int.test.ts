// `openBelay({ serve: true })`: a user's program that serves its data directory to the command line.
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXIT_CODE } from "../../src/cli/shared/exit-code.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { AGENT, type Program, Shell } from "../fixtures/shell.ts";

const PROGRAM = join(import.meta.dirname, "../fixtures/embedded-program.ts");

async function embedded(shell: Shell): Promise<Program> {
  const program = shell.command(process.execPath, PROGRAM, join(shell.env.BELAY_HOME ?? "", "belay.db"));
  await program.sees(/is open/);
  return program;
}

// Each test starts several programs, on a machine that may be busy with other tests.
describe("an embedded Belay that serves its data directory", { timeout: 60_000 }, () => {
  test("G27: ps lists its run, `belay run` connects to it, and stop-all stops the run", async () => {
    const shell = Shell.withDataElsewhere();
    const program = await embedded(shell);
    expect((await shell.belay("ps")).out).toMatch(/run_\w+ +run +running/);
    expect(await shell.belay("run", "say joined")).toMatchObject({ code: 0, out: "joined\n" });
    expect((await shell.belay("stop-all", "--yes")).code).toBe(0);
    await program.sees(/its run: cancelled/);
    program.signal("SIGTERM");
    expect(await program.ended).toBe("SIGTERM");
    const left = ["belay.sock", "server.json"].filter((name) => existsSync(join(shell.env.BELAY_HOME ?? "", name)));
    expect(left).toEqual([]);
  });

  test("G26: a server started meanwhile is refused with its pid; one started afterwards takes over", async () => {
    const shell = Shell.withDataElsewhere();
    const program = await embedded(shell);
    const second = await shell.belay("serve", "--no-tcp", "--agent", AGENT);
    expect(second.code).toBe(EXIT_CODE.store_locked);
    expect(second.err).toContain(`process ${program.child.pid}`);
    program.signal("SIGTERM");
    await program.sees(/its run: shutting_down/);
    await program.ended;
    await shell.serve();
    expect((await shell.belay("ps")).out).toMatch(/run_\w+ +run +running/);
  });

  test("G28: it is found again after its data directory was removed", async () => {
    const shell = Shell.withDataElsewhere();
    const program = await embedded(shell);
    rmSync(shell.env.BELAY_HOME ?? "", { recursive: true });
    await program.sees(/socket and note were restored/);
    expect((await shell.belay("ps")).out).toMatch(/run_\w+ +run +running/);
    program.signal("SIGTERM");
    program.signal("SIGINT");
    await program.ended;
  });

  test("`serve` with a store in memory is refused", async () => {
    const options = { store: ":memory:", agent: () => "done", serve: true };
    await expect(openBelay(options)).rejects.toMatchObject({ code: "invalid" });
  });
});
