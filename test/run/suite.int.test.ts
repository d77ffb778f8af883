// What the long suites say to whoever asks for something they do not have.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT } from "../fixtures/repository.ts";

const ask = (command: string, ...flags: readonly string[]) =>
  spawnSync(process.execPath, [join(ROOT, command), ...flags], { encoding: "utf8" });

const NAMES = ["crash", "damage", "faults", "mutate", "power", "soak", "steady", "trees"];
const SUITES = NAMES.map((name) => `test/${name}/main.ts`);

describe("a suite that is asked for something it does not have", () => {
  test.each([...SUITES, "sim/main.ts", "bench/main.ts"])("says what there is, and not where it fell: %s", (suite) => {
    const { status, stdout, stderr } = ask(suite, "--fast");
    expect(status).toBe(2);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/^Unknown option '--fast'/);
    expect(stderr).toContain("--json");
    expect(stderr).not.toContain("    at ");
  });

  test.each(["", "many", "-1", "1.5"])("a number that is none is refused by its name: %j", (number) => {
    const { status, stderr } = ask("test/damage/main.ts", `--rounds=${number}`);
    expect(stderr).toBe(`--rounds takes a whole number, not ${JSON.stringify(number)}.\n`);
    expect(status).toBe(2);
  });

  test("--help prints help, and nothing is run", () => {
    const { status, stdout, stderr } = ask("test/damage/main.ts", "--help");
    expect(stdout).toBe("It takes:\n  --rounds … (1000)\n  --seed … (1)\n  --json\n");
    expect(stderr).toBe("");
    expect(status).toBe(0);
  });
});
