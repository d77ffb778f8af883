// The commands at a terminal: confirmations, colours, and tables that fit the width.
import { spawn } from "node:child_process";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CliFixture, type CommandOutput, MAIN, said } from "../../../test/fixtures/cli-server.ts";
import { ASKED, answersQueries } from "../../../test/fixtures/shell.ts";
import { EXIT_FOUND } from "../shared/exit-code.ts";

// Each test starts several programs, and how long that takes depends on the load of the machine.
vi.setConfig({ testTimeout: 40_000 });

let cli: CliFixture;

beforeEach(async () => {
  cli = await CliFixture.open();
});

afterEach(() => cli.close());

interface TerminalOptions {
  /** Typed once this text is on the screen. */
  readonly at?: string | RegExp;
  /** CODE stands for what `at` captured. */
  readonly keys?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly columns?: number;
}

/** Runs a command at a real terminal, and types. `out` is what is on the screen. */
function atTerminal(
  args: readonly string[],
  { at, keys = "", env = {}, columns = 200 }: TerminalOptions = {},
): Promise<CommandOutput> {
  const command = [process.execPath, MAIN, ...args].map((word) => `'${word}'`).join(" ");
  const { NO_COLOR: _, ...rest } = cli.env;
  const child = cli.keep(
    spawn("script", ["-qefc", `stty cols ${columns} rows 50; ${command}`, "/dev/null"], {
      env: { ...rest, TERM: "xterm-256color", ...env },
    }),
  );
  let typed = false;
  answersQueries(child);
  return said(child, (screen) => {
    const found =
      typed || at === undefined
        ? null
        : (typeof at === "string" ? RegExp(at.replaceAll(/[[\]/]/g, "\\$&")) : at).exec(screen);
    if (found === null) return;
    typed = true;
    child.stdin?.write(keys.replace("CODE", found[1] ?? ""));
  });
}

describe("stop-all asks for confirmation", () => {
  test.each([
    ["n and Enter", "n\r"],
    ["Enter", "\r"],
    ["Ctrl-C", "\u0003"],
    ["Ctrl-D", "\u0004"],
  ])("%s is a no: nothing is stopped", async (_, keys) => {
    await cli.live();
    const { code, out } = await atTerminal(["stop-all"], { at: "[y/N]", keys });
    expect(out).toContain("Stop 1 run in 1 session at the server at");
    expect(out).toContain("Nothing was stopped.");
    expect(code).toBe(EXIT_FOUND);
    expect((await cli.session.explain()).live?.phase).toBe("running");
  });

  test("y is a yes", async () => {
    const { id } = await cli.live();
    const { code, out } = await atTerminal(["stop-all"], { at: "[y/N]", keys: "y\r" });
    expect(code).toBe(0);
    expect(out).toContain(`${id}  stopping`);
    expect((await cli.session.explain()).live?.phase).toBe("stopping");
  });

  test("--yes skips the confirmation, and so does a server without running work", async () => {
    expect((await atTerminal(["stop-all"])).out).toContain("Nothing was going on");
    await cli.live();
    const { code, out } = await atTerminal(["stop-all", "--yes"]);
    expect(code).toBe(0);
    expect(out).not.toContain("[y/N]");
  });
});

describe("approve", () => {
  test("shows the call, asks, and approves exactly the bytes that were shown", async () => {
    const { turn } = await cli.live();
    const question = await cli.asks(turn, { command: "rm \u202e-rf" });
    const { code, out } = await atTerminal(["approve", question], { at: ASKED, keys: "CODE\r" });
    expect(out).toContain('"command": "rm \\u{202e}-rf"');
    expect(out).not.toContain("\u202e");
    expect(code).toBe(0);
    expect(await cli.settledCall()).toMatchObject({ kind: "completed" });
  });

  test("ignores any answer but the code that was shown: the question stays open", async () => {
    const { turn } = await cli.live();
    const question = await cli.asks(turn, {});
    const { code, out } = await atTerminal(["approve", question], { at: ASKED, keys: "y\r" });
    expect(code).toBe(EXIT_FOUND);
    expect(out).toContain(`belay deny ${question}`);
    expect(await cli.session.questions()).toHaveLength(1);
  });
});

describe("tables", () => {
  test("fit the terminal, with complete ids and a bold heading", async () => {
    const { id } = await cli.live();
    const queued = cli.session.prompt("a prompt that is much too long for this ".repeat(4));
    await queued.accepted;
    const { out } = await atTerminal(["ps"], { columns: 90 });
    expect(out).toContain("\u001b[1mID");
    const lines = out.trimEnd().split("\r\n").slice(1);
    expect(lines).toHaveLength(2);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(90);
    expect(lines[0]?.startsWith(id)).toBe(true);
    expect(lines[1]).toContain("…");
  });

  test.each([{ NO_COLOR: "1" }, { TERM: "dumb" }])("%j: no colours", async (env) => {
    await cli.live();
    const { out } = await atTerminal(["ps"], { env });
    expect(out).toContain("WAITS FOR");
    expect(out).not.toContain("\u001b[");
  });
});
