// G9, G10: a server that is the first process of its container. Nobody reaps there, so the dead stay in the table.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { CHILD_ENV } from "../fixtures/child-env.ts";

const ROOT = join(import.meta.dirname, "../..");
const home = mkdtempSync(join(tmpdir(), "belay-container-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Runs a file of ours as process 1 of a namespace of its own. */
function asFirst(...words: readonly string[]) {
  const inside = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc", process.execPath, ...words];
  return spawnSync("unshare", inside, {
    encoding: "utf8",
    cwd: home,
    env: { ...CHILD_ENV, HOME: home, TMPDIR: home, BELAY_HOME: home },
  });
}

const possible = asFirst("--eval", "process.exit(process.pid === 1 ? 0 : 1)").status === 0;

describe.runIf(possible)("as the first process (where namespaces can be made)", () => {
  test("zombies that were not reaped count as dead: none is reported as escaped", {
    timeout: 60_000,
    meta: { id: "G19/unreaped-children-count-dead" },
  }, () => {
    const { stdout, stderr } = asFirst(join(ROOT, "test/failures/first-process.ts"));
    const said = JSON.parse(stdout.trim() || JSON.stringify({ stderr }));
    expect(said).toMatchObject({ pid: 1, escaped: [] });
    // They are still in the table, which is what makes this a test: a signal to them would not fail.
    expect(said.states.length).toBeGreaterThanOrEqual(3);
    expect(new Set(said.states)).toEqual(new Set(["Z"]));
  });

  test("doctor says that this is so, and what to do", {
    timeout: 60_000,
    meta: { id: "cli/doctor-reports-missing-init" },
  }, () => {
    const { stdout } = asFirst(join(ROOT, "src/cli/main.ts"), "doctor", "--json");
    expect(stdout).toContain("The server is the first process here and does not reap others: use --init, or tini.");
  });
});

test("elsewhere doctor does not say it", { timeout: 60_000, meta: { id: "cli/doctor-no-false-init-warning" } }, () => {
  const { stdout } = spawnSync(process.execPath, [join(ROOT, "src/cli/main.ts"), "doctor", "--json"], {
    encoding: "utf8",
    env: { ...CHILD_ENV, HOME: home, TMPDIR: home, BELAY_HOME: home },
  });
  expect(stdout).toContain("mechanism");
  expect(stdout).not.toContain("first process");
});
