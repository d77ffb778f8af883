// What is different at a terminal: questions before something is done, colours, and tables that fit.
import { spawn } from "node:child_process";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CliFixture, type CommandOutput, MAIN, said } from "../../../test/fixtures/cli-server.ts";
import { ASKED, answersQueries } from "../../../test/fixtures/shell.ts";
import { EXIT_FOUND } from "../shared/exit-code.ts";

// Programs are started, several in a test, and how long that takes is up to how busy the machine is.
vi.setConfig({ testTimeout: 40_000 });

let stage: CliFixture;

beforeEach(async () => {
  stage = await CliFixture.open();
});

afterEach(() => stage.close());

interface Sitting {
  /** Typed once this text is on the screen. */
  readonly at?: string | RegExp;
  /** CODE stands for what `at` has caught. */
  readonly keys?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly columns?: number;
}

/** Types at a real terminal. What is on the screen is `out`. */
function sit(
  words: readonly string[],
  { at, keys = "", env = {}, columns = 200 }: Sitting = {},
): Promise<CommandOutput> {
  const command = [process.execPath, MAIN, ...words].map((word) => `'${word}'`).join(" ");
  const { NO_COLOR: _, ...rest } = stage.env;
  const child = stage.keep(
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

describe("stop-all asks first", () => {
  test.each([
    ["n and Enter", "n\r"],
    ["Enter", "\r"],
    ["Ctrl-C", "\u0003"],
    ["Ctrl-D", "\u0004"],
  ])("%s is a no: nothing is stopped", async (_, keys) => {
    await stage.live();
    const { code, out } = await sit(["stop-all"], { at: "[y/N]", keys });
    expect(out).toContain("Stop 1 run in 1 session at the server at");
    expect(out).toContain("Nothing was stopped.");
    expect(code).toBe(EXIT_FOUND);
    expect((await stage.session.explain()).live?.phase).toBe("running");
  });

  test("y is a yes", async () => {
    const { id } = await stage.live();
    const { code, out } = await sit(["stop-all"], { at: "[y/N]", keys: "y\r" });
    expect(code).toBe(0);
    expect(out).toContain(`${id}  stopping`);
    expect((await stage.session.explain()).live?.phase).toBe("stopping");
  });

  test("--yes asks nobody, and neither does it if nothing goes on", async () => {
    expect((await sit(["stop-all"])).out).toContain("Nothing was going on");
    await stage.live();
    const { code, out } = await sit(["stop-all", "--yes"]);
    expect(code).toBe(0);
    expect(out).not.toContain("[y/N]");
  });
});

describe("approve", () => {
  test("shows it, asks, and sends a yes for exactly what was shown", async () => {
    const { turn } = await stage.live();
    const question = await stage.asks(turn, { command: "rm \u202e-rf" });
    const { code, out } = await sit(["approve", question], { at: ASKED, keys: "CODE\r" });
    expect(out).toContain('"command": "rm \\u{202e}-rf"');
    expect(out).not.toContain("\u202e");
    expect(code).toBe(0);
    expect(await stage.settledCall()).toMatchObject({ kind: "completed" });
  });

  test("anything but the code shown is no answer: the question still waits", async () => {
    const { turn } = await stage.live();
    const question = await stage.asks(turn, {});
    const { code, out } = await sit(["approve", question], { at: ASKED, keys: "y\r" });
    expect(code).toBe(EXIT_FOUND);
    expect(out).toContain(`belay deny ${question}`);
    expect(await stage.session.questions()).toHaveLength(1);
  });
});

describe("tables", () => {
  test("fit the terminal, with ids whole and the heading bold", async () => {
    const { id } = await stage.live();
    const queued = stage.session.prompt("a prompt that is much too long for this ".repeat(4));
    await queued.accepted;
    const { out } = await sit(["ps"], { columns: 90 });
    expect(out).toContain("\u001b[1mID");
    const lines = out.trimEnd().split("\r\n").slice(1);
    expect(lines).toHaveLength(2);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(90);
    expect(lines[0]?.startsWith(id)).toBe(true);
    expect(lines[1]).toContain("…");
  });

  test.each([{ NO_COLOR: "1" }, { TERM: "dumb" }])("%j: no colours", async (env) => {
    await stage.live();
    const { out } = await sit(["ps"], { env });
    expect(out).toContain("WAITS FOR");
    expect(out).not.toContain("\u001b[");
  });
});
