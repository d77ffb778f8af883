// A command of the agent finds no file or socket of its server with which it could act as the owner.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readServer } from "../../src/sdk/data-dir.ts";
import { here } from "../fixtures/mechanisms-here.ts";
import { Shell } from "../fixtures/shell.ts";

const CONFIG = "export default {};\n";

// Only a namespace hides files from a command of the same user.
describe.runIf(here().includes("bubblewrap"))("a command (where bubblewrap works)", { timeout: 60_000 }, () => {
  test("G35: cannot reach a named socket, nor read the file of a provider key", async () => {
    const keyFile = "provider.key";
    const shell = new Shell({ OPENAI_API_KEY_FILE: keyFile });
    writeFileSync(join(shell.home, keyFile), "key-of-the-provider");
    const socket = join(shell.home, "named.sock");
    const home = join(shell.home, "data");
    await shell.serve("--home", home, "--socket", socket, "--require", "namespace");
    await shell.belay(
      ...["run", "--home", home],
      `shell cat ${keyFile} > seen; test -S ${socket} && echo reached >> seen; echo done >> seen`,
    );
    expect(readFileSync(join(shell.home, "seen"), "utf8")).toBe("done\n");
  });

  test("G38: cannot change the configuration of the next start, nor the program", async () => {
    const shell = new Shell();
    const config = join(shell.home, "named.config.mjs");
    writeFileSync(config, CONFIG);
    const added = join(import.meta.dirname, "../../belay-must-not-be-here");
    const home = join(shell.home, "data");
    await shell.serve("--home", home, "--config", config, "--require", "namespace");
    await shell.belay(
      ...["run", "--home", home],
      `shell echo evil >> ${config}; mv ${config} old; rm -f ${config}; echo evil > ${added}; echo done > seen`,
    );
    expect(readFileSync(join(shell.home, "seen"), "utf8")).toBe("done\n");
    expect(readFileSync(config, "utf8")).toBe(CONFIG);
    expect(existsSync(added)).toBe(false);
  });

  test("G35: cannot reach a socket outside of the home, whose path is too long for one", async () => {
    const shell = new Shell();
    const home = join(shell.home, "d".repeat(100));
    mkdirSync(home, { mode: 0o700 });
    await shell.serve("--home", home, "--require", "namespace");
    const { socket = "" } = readServer({ serverFile: join(home, "server.json") }) ?? {};
    expect(socket).not.toContain(home);
    await shell.belay("run", "--home", home, `shell test -S ${socket} && echo reached > seen; echo done >> seen`);
    expect(readFileSync(join(shell.home, "seen"), "utf8")).toBe("done\n");
  });
});
