// Valid requests for processes, and the errors of invalid ones.
import { describe, expect, test } from "vitest";
import { logOf } from "../../../test/fixtures/belay.ts";
import { stage } from "../../../test/fixtures/engine-processes.ts";
import { ARGUMENT_BYTES_MAX, ARGUMENTS_BYTES_MAX, PATH_BYTES_MAX, TERMINAL_CELLS_MAX } from "../../core/limits.ts";
import type { CommandLine, RunOptions, StartOptions } from "../../ports/spawner.ts";
import { checkCommand, checkRun, checkStart } from "./validate-process.ts";

const refused = (message: string): unknown => expect.objectContaining({ code: "invalid", message });
const DAY_MS = 24 * 60 * 60_000;

describe("a command", () => {
  const WHAT_IT_IS = 'A command is a text for the shell, or a list of arguments: ["git", "status"].';

  test("is accepted unchanged: a string with its spaces, a list with its empty arguments", () => {
    const good: readonly CommandLine[] = [" ls -l ", ["git"], ["git", "status", ""]];
    for (const command of good) expect(checkCommand(command)).toEqual(command);
  });

  test("is a copy: changing the list afterwards changes nothing", () => {
    const args = ["rm", "old"];
    const checked = checkCommand(args);
    args[1] = "new";
    expect(checked).toEqual(["rm", "old"]);
  });

  test.each<readonly [unknown, string]>([
    ["", "The command is empty."],
    [" \n\t", "The command is empty."],
    [["", "status"], "The first argument, the program, is empty."],
    [[], WHAT_IT_IS],
    [["git", 1], WHAT_IT_IS],
    [[1, "git"], WHAT_IT_IS],
    [undefined, WHAT_IT_IS],
    [null, WHAT_IT_IS],
    [{ length: 1, 0: "git" }, WHAT_IT_IS],
    // biome-ignore lint/suspicious/noSparseArray: that is what is tested
    [["git", , "status"], WHAT_IT_IS],
    ["echo \0", "The command holds a NUL byte, which would end it there."],
    [["echo", "\0"], "Argument 1 of the command holds a NUL byte, which would end it there."],
    ["echo \ud83d", "The command is not well-formed Unicode."],
  ])("%j is invalid", (command, message) => {
    expect(() => checkCommand(command)).toThrow(refused(message));
  });

  test("may be as long as the system accepts, and not longer", () => {
    const longest = "x".repeat(ARGUMENT_BYTES_MAX - 1);
    expect(checkCommand(longest)).toBe(longest);
    expect(checkCommand(["echo", longest])).toEqual(["echo", longest]);
    const tooLong = `${ARGUMENT_BYTES_MAX} bytes; the system takes less than ${ARGUMENT_BYTES_MAX}.`;
    expect(() => checkCommand(`${longest}x`)).toThrow(refused(`The command has ${tooLong}`));
    expect(() => checkCommand(["echo", `${longest}x`])).toThrow(refused(`Argument 1 of the command has ${tooLong}`));
    const many = ["true", ...Array.from({ length: 8 }, () => longest)] as const;
    const together = 4 + 8 * longest.length + 9 * many.length;
    expect(() => checkCommand(many)).toThrow(
      refused(`The arguments have ${together} bytes together; at most ${ARGUMENTS_BYTES_MAX} are taken.`),
    );
  });
});

describe("options that start() and run() share", () => {
  const env = { KEY: "value" };
  const hear = (): void => {};

  test.each<StartOptions & RunOptions>([
    {},
    { cwd: "x".repeat(PATH_BYTES_MAX - 1), inherit: { A: "1", B: undefined } },
    { cwd: "/work", env, hear, terminal: { columns: 1, rows: TERMINAL_CELLS_MAX }, graceMs: 0, timeoutMs: 0 },
    {
      profile: "none",
      stdin: "open",
      inherit: "listed",
      feedback: "wake",
      terminal: { columns: TERMINAL_CELLS_MAX, rows: 1 },
    },
    { profile: "contain", stdin: "closed", inherit: "all", feedback: "next-turn", graceMs: 30_000, timeoutMs: DAY_MS },
    { profile: "workspace", inherit: env, feedback: "silent", env: {}, limits: {} },
    {
      limits: { processesMax: 1, memoryBytesMax: 1, fileBytesMax: 1, cpuSecondsMax: 1, outputBytesMax: 2 ** 53 - 1 },
    },
  ])("%j are accepted unchanged", (options) => {
    expect(checkStart(options)).toStrictEqual(options);
    expect(checkRun(options)).toStrictEqual(options);
  });

  const INHERIT = '`inherit` is "listed", "all" or an environment.';
  const SIZE = `The size of a terminal is { columns, rows }, each from 1 to ${TERMINAL_CELLS_MAX}.`;
  test.each<readonly [object, string]>([
    [{ cwd: "" }, "`cwd` is a path."],
    [{ cwd: 1 }, "`cwd` is a path."],
    [{ cwd: "a\0b" }, "`cwd` holds a NUL byte, which would end it there."],
    [{ cwd: "\ud83d" }, "`cwd` is not well-formed Unicode."],
    [{ cwd: "é".repeat(PATH_BYTES_MAX / 2) }, "`cwd` has 4096 bytes; a path has less than 4096."],
    [{ env: "A=1" }, "`env` is an object of texts."],
    [{ env: { A: "1", B: 2 } }, "`env` is an object of texts."],
    [{ profile: "all" }, '`profile` is "none", "contain" or "workspace".'],
    [{ stdin: "pipe" }, '`stdin` is "open" or "closed".'],
    [{ inherit: "some" }, INHERIT],
    [{ inherit: null }, INHERIT],
    [{ inherit: { A: 5 } }, INHERIT],
    [{ hear: "stdout" }, "`hear` is a function."],
    [{ terminal: true }, SIZE],
    [{ terminal: null }, SIZE],
    [{ terminal: { columns: 80 } }, SIZE],
    [{ terminal: { rows: 24 } }, SIZE],
    [{ terminal: { columns: 0, rows: 24 } }, SIZE],
    [{ terminal: { columns: 80, rows: 0 } }, SIZE],
    [{ terminal: { columns: TERMINAL_CELLS_MAX + 1, rows: 24 } }, SIZE],
    [{ terminal: { columns: 80, rows: TERMINAL_CELLS_MAX + 1 } }, SIZE],
    [{ terminal: { columns: 80.5, rows: 24 } }, SIZE],
    [{ terminal: { columns: "80", rows: 24 } }, SIZE],
    [{ limits: 5 }, "`limits` is an object of numbers."],
    [{ limits: { wishes: 3 } }, "`limits` has no `wishes`."],
    [{ limits: { processesMax: 0 } }, "`limits.processesMax` is a whole number from 1."],
    [{ limits: { memoryBytesMax: 1.5 } }, "`limits.memoryBytesMax` is a whole number from 1."],
    [{ limits: { fileBytesMax: "1" } }, "`limits.fileBytesMax` is a whole number from 1."],
    [{ limits: { cpuSecondsMax: -1 } }, "`limits.cpuSecondsMax` is a whole number from 1."],
    [{ limits: { outputBytesMax: 2 ** 53 } }, "`limits.outputBytesMax` is a whole number from 1."],
    [{ graceMs: 30_001 }, "graceMs is a whole number of milliseconds from 0 to 30000."],
    [{ graceMs: -1 }, "graceMs is a whole number of milliseconds from 0 to 30000."],
    [{ timeoutMs: DAY_MS + 1 }, "timeoutMs is a whole number of milliseconds from 0 to 86400000."],
    [{ timeoutMs: "1s" }, "timeoutMs is a whole number of milliseconds from 0 to 86400000."],
    [{ feedback: "loud" }, '`feedback` is "wake", "next-turn" or "silent".'],
  ])("%j are refused, with the valid values", (options, message) => {
    expect(() => checkStart(options)).toThrow(refused(message));
    expect(() => checkRun(options)).toThrow(refused(message));
  });

  test("a value that is not an object is refused, even without properties", () => {
    for (const options of [null, "wake", 5, [], true] as unknown as readonly object[]) {
      expect(() => checkStart(options)).toThrow(refused("The options of start() are an object."));
      expect(() => checkRun(options)).toThrow(refused("The options of run() are an object."));
    }
  });

  test("an unknown option is named, with the method it was given to", () => {
    const unknown: object = { colour: "red", size: 1 };
    expect(() => checkStart(unknown)).toThrow(refused("start() has no `colour`, `size`."));
    expect(() => checkRun(unknown)).toThrow(refused("run() has no `colour`, `size`."));
  });
});

describe("options of one of them", () => {
  test("only start() accepts `lasting`", () => {
    expect(checkStart({ lasting: true })).toStrictEqual({ lasting: true });
    const no = { lasting: false } as unknown as StartOptions;
    expect(() => checkStart(no)).toThrow(refused("`lasting` is true, or left out."));
    const lasting: RunOptions & StartOptions = { lasting: true };
    expect(() => checkRun(lasting)).toThrow(refused("run() has no `lasting`."));
  });

  test("only run() accepts `backgroundAfterMs`", () => {
    for (const backgroundAfterMs of [0, DAY_MS]) {
      expect(checkRun({ backgroundAfterMs })).toStrictEqual({ backgroundAfterMs });
    }
    const message = "backgroundAfterMs is a whole number of milliseconds from 0 to 86400000.";
    for (const backgroundAfterMs of [-1, DAY_MS + 1]) {
      expect(() => checkRun({ backgroundAfterMs })).toThrow(refused(message));
    }
    const later: RunOptions & StartOptions = { backgroundAfterMs: 5 };
    expect(() => checkStart(later)).toThrow(refused("start() has no `backgroundAfterMs`."));
  });
});

test.each<readonly [string, unknown, StartOptions]>([
  ["a command of 3 MB", `echo ${"x".repeat(3_000_000)}`, {}],
  ["6 MB of arguments", ["echo", ...Array.from({ length: 60 }, () => "x".repeat(100_000))], {}],
  ["a directory of 1 MB", "true", { cwd: "x".repeat(1_000_000) }],
  ["a NUL byte", "echo \0", {}],
  ["half a character", ["echo", "\ud83d"], {}],
  ["a terminal that is no screen", "true", { terminal: { columns: TERMINAL_CELLS_MAX + 1, rows: 1 } }],
])("G3: %s is refused before anything is recorded", async (_, command, options) => {
  const { belay, spawner } = await stage();
  const session = await belay.createSession();
  const before = await logOf(session);
  await expect(session.processes.start(command as CommandLine, options)).rejects.toMatchObject({ code: "invalid" });
  expect(await logOf(session)).toEqual(before);
  expect(spawner.children).toEqual([]);
});
