import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { identityOf } from "../process/tree/proc.ts";
import { type Belay, openBelay } from "../sdk/belay.ts";
import { EXIT_CODE, EXIT_SIGNAL } from "./shared/exit-code.ts";

// Each test starts several programs, and how long that takes depends on the load of the machine.
vi.setConfig({ testTimeout: 40_000 });

const main = join(import.meta.dirname, "main.ts");
let folder = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "belay-cli-test-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Output {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the command line as a user does. `onText` sends a signal once the output contains a text. */
function belay(args: readonly string[], onText?: { readonly text: string; readonly send: NodeJS.Signals }) {
  return new Promise<Output>((resolve, reject) => {
    const child = spawn(process.execPath, [main, ...args], { env: { ...process.env, TMPDIR: folder, NO_COLOR: "1" } });
    let out = "";
    let err = "";
    let sent = false;
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
      if (onText === undefined || sent || !out.includes(onText.text)) return;
      sent = true;
      child.kill(onText.send);
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, out, err }));
  });
}

describe("finding the command", () => {
  test("without a command it prints the help", async () => {
    const { code, out } = await belay([]);
    expect(code).toBe(0);
    expect(out).toContain("belay verify FILE");
    expect((await belay(["--help"])).out).toBe(out);
    expect((await belay(["help"])).out).toBe(out);
  });

  test("--version prints the version of the package", async () => {
    const { out } = await belay(["--version"]);
    expect(out).toMatch(/^\d+\.\d+\.\d+/);
    expect((await belay(["-v"])).out).toBe(out);
    expect((await belay(["version"])).out).toBe(out);
    expect(JSON.parse((await belay(["version", "--json"])).out)).toMatchObject({ version: out.trim() });
  });

  test("help of a command is the command's --help", async () => {
    const { code, out } = await belay(["help", "cancel"]);
    expect(code).toBe(0);
    expect(out).toContain("Usage: belay cancel ID [options]");
    expect((await belay(["cancel", "--help"])).out).toBe(out);
  });

  test.each([
    [["dmeo"], "Did you mean: belay demo?"],
    [["--verison"], "Did you mean: belay version?"],
    [["frobnicate"], "belay --help lists what there is."],
    [["frobnicate", "--help"], "belay --help lists what there is."],
    [["help", "cancle"], "Did you mean: belay cancel?"],
    [["verify", "x.db", "--jsno"], "Did you mean --json?"],
    [["verify"], "Try: belay verify belay.db"],
    [["verify", "a", "b"], "one file at a time"],
    [["demo", "now"], "Try: belay demo"],
    [["cancel"], "cancel needs to know which id."],
    [["cancel", "run_1", "--raeson", "x"], "Did you mean --reason?"],
    [["cancel", "run_1", "--reason"], "--reason needs a value"],
    [["stop-al"], "Did you mean: belay stop-all?"],
    [["complete-id"], "belay --help lists what there is."],
    [["ps", "--url", "http://x", "--store", "y"], "cannot be used with"],
    [["completion", "tcsh"], "There are: bash, zsh, fish."],
    [["answer", "ask_1"], "answer needs to know which value."],
    [["sessions", "--limit", "0"], "from 1 to 1000"],
    [["follow", "ses_1", "--after", "-1"], "--after"],
    [["token", "lsit"], "Did you mean: belay token list?"],
  ])("%j is refused with advice", async (args, advice) => {
    const { code, out, err } = await belay(args);
    expect(code).toBe(EXIT_CODE.invalid);
    expect(err).toContain(advice);
    expect(err).not.toContain("    at ");
    expect(out).toBe("");
  });

  test("commands that need a server exit 19 without one, and say how to start it", async () => {
    const home = join(folder, "no-home");
    for (const args of [["ps"], ["cancel", "run_1"], ["stop-all", "--yes"], ["follow"], ["approve"]]) {
      const { code, out, err } = await belay([...args, "--home", home]);
      expect(code).toBe(EXIT_CODE.disconnected);
      expect(err).toContain("belay serve");
      expect(out).toBe("");
    }
    expect(existsSync(home)).toBe(false);
  });
});

describe("demo", () => {
  test("plays to its end, prints what happened, and removes its folder", async () => {
    const { code, out, err } = await belay(["demo", "--fast"]);
    expect(err).toBe("");
    expect(code).toBe(0);
    const flat = out.replaceAll(/\s+/g, " ");
    for (const line of [
      "withdrawn: it had not begun, and never will",
      "completed: its words were taken into the live run",
      "(demo) I call list_files.",
      "write_file was not carried out: denied by alice: not before lunch.",
      "plan.txt is there now",
      "count_slowly was stopped by alice: too far.",
      'count_slowly is done: {"counted":4}.',
      "given up: stubborn",
      "came back late",
      "demo --hands-on",
      "idle: nothing was going on",
      "The tool ran once",
    ]) {
      expect(flat).toContain(line);
    }
    const pid = /process (\d+), which is alive/.exec(out)?.[1];
    expect(out).toContain(`process ${pid} is gone, with all of them`);
    expect(flat).toMatch(/held by tier "\w+" \(\w+\)/);
    expect(flat).toMatch(/Background report: proc_\S+ ended by itself with exit code 0/);
    expect(out.trimEnd().endsWith("done")).toBe(true);
    expect(out).not.toContain("\u001b[");
    expect(readdirSync(folder).filter((name) => name.startsWith("belay-demo-"))).toEqual([]);
  });

  test.each(["SIGINT", "SIGTERM"] as const)("%s shuts it down gracefully in the middle of the tour", async (send) => {
    const { code, out } = await belay(["demo"], { text: "agent", send });
    expect(out).toContain("Stopped, as asked.");
    expect(code).toBe(EXIT_SIGNAL[send]);
    expect(out).not.toContain("That was it");
    expect(readdirSync(folder).filter((name) => name.startsWith("belay-demo-"))).toEqual([]);
  });
});

test("a signal while a process of the demo runs leaves neither the process nor the folder behind", async () => {
  const { code, out } = await belay(["demo", "--fast"], { text: "which is alive", send: "SIGTERM" });
  expect(code).toBe(EXIT_SIGNAL.SIGTERM);
  const pid = Number(/process (\d+), which is alive/.exec(out)?.[1]);
  // A zombie has no identity and does nothing.
  expect(identityOf(pid)).toBeUndefined();
  expect(readdirSync(folder).filter((name) => name.startsWith("belay-demo-"))).toEqual([]);
});

test("a reader that closes the pipe is not an error, and no folder is left behind", async () => {
  const command = `"${process.execPath}" "${main}" demo | head -n 3`;
  const child = spawn("bash", ["-o", "pipefail", "-c", command], { env: { ...process.env, TMPDIR: folder } });
  let err = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  child.stdout.resume();
  const code = await new Promise((resolve) => child.on("close", resolve));
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(readdirSync(folder).filter((name) => name.startsWith("belay-demo-"))).toEqual([]);
});

describe("verify", () => {
  const file = (): string => join(folder, "verify.db");
  let open: Belay;

  beforeAll(async () => {
    open = await openBelay({
      store: file(),
      agent: async (turn) => {
        await turn.call("tool", {}, () => "ok");
        return "done";
      },
    });
    const session = await open.createSession();
    const runs = ["one", "two", "three"].map((text) => session.prompt(text));
    await runs[2]?.cancel();
    await Promise.all(runs.map((run) => run.outcome));
  });

  afterAll(() => open.close());

  test("a file that a server has open can be verified", async () => {
    const { code, out, err } = await belay(["verify", file()]);
    expect(err).toBe("");
    expect(out).toMatch(/1 session, 3 runs, \d+ events read/);
    expect(out).toContain("Nothing was found.");
    expect(code).toBe(0);
  });

  test("--json prints its result as the last line", async () => {
    const { code, out } = await belay(["verify", file(), "--json"]);
    const last: unknown = JSON.parse(out.trimEnd().split("\n").at(-1) ?? "");
    expect(last).toMatchObject({ verify: file(), sessions: 1, runs: 3, findings: [] });
    expect(code).toBe(0);
  });

  test("tampering is detected by the checksums, and without them by the guarantees", async () => {
    await open.close();
    const database = new DatabaseSync(file());
    const tampered = database.prepare("UPDATE event SET data = REPLACE(data, 'run.started', 'run.parked')").run();
    expect(tampered.changes).toBeGreaterThan(0);
    const damaged = await belay(["verify", file()]);
    expect(damaged.code).toBe(12);
    expect(damaged.err).toMatch(/damaged/);
    // Without checksums, as if the log had been written that way.
    database.exec("UPDATE event SET sum = NULL");
    database.close();
    const text = await belay(["verify", file()]);
    expect(text.code).toBe(1);
    expect(text.out).toMatch(/finding/);
    const json = await belay(["verify", file(), "--json"]);
    const { findings } = JSON.parse(json.out) as { findings: { guarantee: string; session: string; seq: number }[] };
    expect(json.code).toBe(1);
    expect(findings[0]).toMatchObject({ guarantee: expect.stringMatching(/^G\d+$/), seq: expect.any(Number) });
  });

  test("reading a file that no program has open creates no files beside it", async () => {
    const rest = join(folder, "rest.db");
    await (await openBelay({ store: rest, agent: () => {} })).close();
    const before = readdirSync(folder);
    expect((await belay(["verify", rest])).code).toBe(0);
    expect(readdirSync(folder)).toEqual(before);
  });

  test("a path that is missing, a directory, not a database, or too new is refused with its own code", async () => {
    const garbage = join(folder, "garbage.db");
    writeFileSync(garbage, "this is not a database, but it is long enough to have a header of one: ".repeat(4));
    const newer = join(folder, "newer.db");
    await (await openBelay({ store: newer, agent: () => {} })).close();
    const database = new DatabaseSync(newer);
    database.exec("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
    database.close();

    const answers = await Promise.all(
      [join(folder, "none.db"), folder, garbage, newer].map((one) => belay(["verify", one])),
    );
    expect(answers.map(({ code }) => code)).toEqual([3, 3, EXIT_CODE.store_corrupt, EXIT_CODE.store_newer]);
    for (const { err } of answers) expect(err.trim().split("\n").length).toBe(2);
  });
});
