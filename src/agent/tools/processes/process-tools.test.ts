// The process tools with fake processes: what the model receives in each case.
import { describe, expect, test } from "vitest";
import { ControlError } from "../../../core/errors.ts";
import type { Json, JsonInput } from "../../../core/model/prompt.ts";
import type { LiveCall } from "../../../ports/agent.ts";
import type {
  CallProcesses,
  CommandResult,
  OutputFile,
  ProcessHandle,
  ProcessInfo,
  ProcessResult,
} from "../../../ports/spawner.ts";
import { Gate } from "../../../testing/gate.ts";
import { type ManualClock, manualClock, settled } from "../../../testing/manual-clock.ts";
import { COMMAND_CHARS_MAX, COMMAND_NOTE_FIRST_MS, START_WATCH_MS } from "../../limits.ts";
import { processTools } from "./process-tools.ts";
import type { ProcessToolName, ProcessToolsOptions } from "./process-tools-options.ts";

const ID = "proc_1.1";
const CALL = "call_1.1.1";

/** Output as the files of a process return it; ASCII only, so that a character is a byte. */
function output(text: string, { kept = text.length, ended = true } = {}): OutputFile {
  const bytes = { stdout: text.length, stderr: 0, all: text.length };
  return {
    counts: { bytes, kept: { stdout: kept, stderr: 0, all: kept }, lines: text.split("\n").length - 1 },
    dir: "/output",
    read: async ({ stream = "all", offset = 0, bytesMax = 64 } = {}) => {
      const all = stream === "stderr" ? "" : text;
      const from = Math.min(offset, all.length);
      const to = Math.min(all.length, from + bytesMax);
      return { stream, from, to, text: all.slice(from, to), missing: 0, end: ended && to === all.length };
    },
    excerpt: () => ({ head: text, tail: "", omitted: 0 }),
  };
}

const COMPLETED: ProcessResult = {
  processId: ID,
  outcome: { kind: "completed" },
  exit: { code: 0 },
  durationMs: 1_234,
};

const INFO: ProcessInfo = {
  ...{ id: ID, owner: CALL, title: "make", phase: "running", feedback: "silent", pid: 42, tier: "namespace" },
};

function handle(parts: Partial<ProcessHandle> = {}): ProcessHandle {
  return {
    ...{ id: ID, sessionId: "ses_1", info: undefined },
    wait: async () => COMPLETED,
    cancel: async () => ({ kind: "stopping", since: 7, first: true }),
    write: () => Promise.reject(new Error("not in this test")),
    endInput: () => undefined,
    resize: () => Promise.reject(new Error("not in this test")),
    output: async () => output("hello\n"),
    read: () => Promise.reject(new Error("not in this test")),
    follow: () => {
      throw new Error("not in this test");
    },
    ...parts,
  };
}

interface Scene {
  readonly call: LiveCall;
  readonly clock: ManualClock;
  readonly partials: JsonInput[];
  readonly told: JsonInput[];
  readonly abort: () => void;
}

function scene(parts: Partial<CallProcesses>): Scene {
  const partials: JsonInput[] = [];
  const told: JsonInput[] = [];
  const clock = manualClock();
  const aborting = new AbortController();
  const processes: CallProcesses = {
    run: async () => ({ kind: "ended", ...COMPLETED }),
    start: async () => handle({ info: { ...INFO, owner: "ses_1" }, wait: async () => undefined }),
    get: async () => handle(),
    list: async () => [INFO],
    ...parts,
  };
  const call: LiveCall = {
    ...({ sessionId: "ses_1", runId: "run_1.1", cwd: undefined, mode: undefined, callId: CALL } as const),
    ...({ name: "shell", input: null } as const),
    ...{ clock, processes, signal: aborting.signal, stopping: false },
    partial: (result) => partials.push(result),
    progress: (data) => told.push(data),
    changed: () => expect.unreachable("a command does not know what it has changed"),
    ask: () => Promise.reject(new Error("no answer")),
  };
  return { call, clock, partials, told, abort: () => aborting.abort(new Error("stopped")) };
}

function use(name: ProcessToolName, input: Json, { call }: Scene, options?: ProcessToolsOptions): Promise<unknown> {
  return processTools(options)[name].execute({ ...call, name, input });
}

describe("shell", () => {
  test("reports how the command ended, how long it took, and its output", async () => {
    expect(await use("shell", { command: "make" }, scene({}))).toBe(
      "Ended with exit code 0 after 1.2 s.\nOutput, 6 bytes:\nhello\n",
    );
  });

  test("a signal that Belay did not send is reported by name, and empty output as such", async () => {
    const exit = { signal: "SIGSEGV" };
    const get = async (): Promise<ProcessHandle> => handle({ output: async () => output("") });
    const on = scene({ run: async () => ({ kind: "ended", ...COMPLETED, exit }), get });
    expect(await use("shell", { command: "crash" }, on)).toBe(
      "Ended by SIGSEGV (not sent by Belay) after 1.2 s.\nIt has written nothing.",
    );
  });

  test("a long output is reported by its beginning and end, with the way to read the rest", async () => {
    const text = `${"a".repeat(1_000)}${"b".repeat(1_000)}${"c".repeat(1_000)}`;
    const on = scene({ get: async () => handle({ output: async () => output(text) }) });
    const told = String(await use("shell", { command: "make" }, on, { outputBytesMax: 1_024 }));
    expect(told).toContain("Output, the first and the last of 3,000 bytes:");
    expect(told).toContain(
      '\n… 1,976 bytes left out; read them with read_output {"processId":"proc_1.1","offset":512} …\n',
    );
    expect(told.match(/[abc]{9,}/g)).toEqual(["a".repeat(512), "c".repeat(512)]);
  });

  test("the shorter time limit of host and model applies, and is reported as the reason", async () => {
    const limits: unknown[] = [];
    const run: CallProcesses["run"] = async (_, options) => {
      limits.push(options?.timeoutMs);
      const outcome = { kind: "cancelled", reason: { kind: "timeout", limitMs: 90_000 } } as const;
      return { kind: "ended", ...COMPLETED, outcome, exit: { signal: "SIGTERM" } };
    };
    const told = await use("shell", { command: "make", timeoutMs: 90_000 }, scene({ run }), { timeoutMs: 120_000 });
    await use("shell", { command: "make", timeoutMs: 90_000 }, scene({ run }), { timeoutMs: 60_000 });
    await use("shell", { command: "make" }, scene({ run }));
    expect(limits).toEqual([90_000, 60_000, undefined]);
    expect(told).toContain("STOPPED by its time limit of 1 min 30 s. It did not finish: ended by SIGTERM");
  });

  test("a long command is moved to the background, and the model gets its id and the next steps", async () => {
    const asked: unknown[] = [];
    const run: CallProcesses["run"] = async (_, options) => {
      asked.push(options);
      return { kind: "background", process: handle({ info: INFO }) } satisfies CommandResult;
    };
    const told = await use("shell", { command: "make", cwd: "sub" }, scene({ run }));
    expect(asked).toEqual([{ cwd: "sub", backgroundAfterMs: 60_000, feedback: "wake" }]);
    expect(told).toContain("It is still running after 1 min, and continues in the background as proc_1.1.");
    expect(told).toContain("You are notified when it ends by itself");
    expect(told).toContain("hello");
  });

  test("a running command reports the end of its output at intervals, and keeps it as partial result", async () => {
    const over = new Gate();
    const run: CallProcesses["run"] = async () => {
      await over.opened;
      return { kind: "ended", ...COMPLETED };
    };
    const on = scene({ run });
    const coming = use("shell", { command: "make" }, on);
    await settled();
    expect(on.told).toEqual([]);
    await on.clock.advance(COMMAND_NOTE_FIRST_MS);
    await settled();
    expect(on.told).toEqual([{ processId: ID, bytes: 6, lines: 1, tail: "hello\n" }]);
    expect(on.partials).toEqual(["Output, 6 bytes:\nhello\n"]);
    over.open();
    await coming;
    expect(on.clock.pending).toEqual([]);
  });

  test("a running command reports only the end of long output, not joined to its beginning", async () => {
    const over = new Gate();
    const run: CallProcesses["run"] = async () => {
      await over.opened;
      return { kind: "ended", ...COMPLETED };
    };
    const long: OutputFile = { ...output(""), excerpt: () => ({ head: "first ", tail: "last", omitted: 9_000 }) };
    const on = scene({ run, get: async () => handle({ output: async () => long }) });
    const coming = use("shell", { command: "make" }, on);
    await on.clock.advance(COMMAND_NOTE_FIRST_MS);
    await settled();
    expect(on.told).toMatchObject([{ tail: "last" }]);
    over.open();
    await coming;
  });

  test("a stopped command keeps its output, including what it writes during the stop", async () => {
    const gone = new Gate();
    const on = scene({
      run: async () => {
        await gone.opened;
        throw on.call.signal.reason;
      },
      get: async () => handle({ output: async () => output(gone.isOpen ? "hello\nbye\n" : "hello\n") }),
      list: async () => (gone.isOpen ? [] : [INFO]),
    });
    const coming = use("shell", { command: "make" }, on);
    coming.catch(() => {});
    await settled();
    on.abort();
    await settled();
    expect(on.partials).toEqual(["Output, 6 bytes:\nhello\n"]);
    gone.open();
    await expect(coming).rejects.toThrow("stopped");
    expect(on.partials.at(-1)).toBe("Output, 10 bytes:\nhello\nbye\n");
    expect(on.clock.pending).toEqual([]);
  });

  test("a command that ended by itself before the stop reached it is reported as ended", async () => {
    const on = scene({
      run: async () => {
        on.abort();
        return { kind: "ended", ...COMPLETED };
      },
    });
    expect(await use("shell", { command: "make" }, on)).toContain("exit code 0");
  });

  test("processes that survived every signal are listed", async () => {
    const on = scene({ run: async () => ({ kind: "ended", ...COMPLETED, escaped: [77, 78] }) });
    expect(await use("shell", { command: "make" }, on)).toContain(
      "2 of its processes survived every signal and may still be running: 77, 78.",
    );
  });

  test("if the files are gone, the output in the log is reported", async () => {
    const note = { bytes: 9_000, stdoutBytes: 9_000, stderrBytes: 0, tail: "the end" };
    const get = async (): Promise<ProcessHandle> => handle({ output: async () => undefined });
    const on = scene({ run: async () => ({ kind: "ended", ...COMPLETED, output: note }), get });
    expect(await use("shell", { command: "make" }, on)).toContain("of 9000 bytes:\nthe end");
  });
});

describe("a refusal comes with advice", () => {
  const failing = (error: ControlError): Scene => scene({ run: () => Promise.reject(error) });

  test.each([
    ["not_started", "Nothing was run. Check the name of the program"],
    ["uncontained", "Do not try again: say what is missing."],
    ["overloaded", "Stop one first, with stop_process. Running in this session:\n- proc_1.1: make"],
    ["queue_full", "End your turn"],
    ["invalid", "Correct the input"],
    ["shutting_down", "It is so."],
  ] as const)("%s", async (code, advice) => {
    const coming = use("shell", { command: "make" }, failing(new ControlError(code, "It is so.")));
    await expect(coming).rejects.toMatchObject({ code, message: expect.stringContaining(advice) });
    await expect(coming).rejects.toMatchObject({ message: expect.stringContaining("It is so.") });
  });

  test.each(["read_output", "wait_process", "stop_process"] as const)(
    "%s of an unknown process lists the running ones",
    async (name) => {
      const get = (): Promise<never> => Promise.reject(new ControlError("not_found", "There is no process proc_1.9."));
      const some = use(name, { processId: "proc_1.9" }, scene({ get }));
      await expect(some).rejects.toThrow("There is no process proc_1.9.\nRunning in this session:\n- proc_1.1: make");
      const none = use(name, { processId: "proc_1.9" }, scene({ get, list: async () => [] }));
      await expect(none).rejects.toThrow("No process is running in this session.");
    },
  );
});

describe("start_process", () => {
  test("returns the id, the containment tier, and how its end will be reported", async () => {
    const told = await use("start_process", { command: ["npm", "run", "dev"] }, scene({}));
    expect(told).toContain("proc_1.1 runs in the background (pid 42, held by tier namespace).");
    expect(told).toContain("even if there is no prompt until then");
  });

  test.each([
    ["next-turn", "with the next prompt"],
    ["silent", "You are not notified when it ends."],
  ] as const)("the host's feedback setting is used and reported: %s", async (feedback, words) => {
    const asked: unknown[] = [];
    const start: CallProcesses["start"] = async (_, options) => {
      asked.push(options);
      return handle({ info: INFO, wait: async () => undefined });
    };
    const on = scene({ start });
    const process = { profile: "workspace", env: { CI: "1" } } as const;
    const told = await use("start_process", { command: "dev", timeoutMs: 5_000 }, on, { feedback, process });
    expect(asked).toEqual([{ profile: "workspace", env: { CI: "1" }, timeoutMs: 5_000, feedback }]);
    expect(told).toContain(words);
    const limit = feedback === "silent" ? "start. " : "start, and you are notified of that too. ";
    expect(told).toContain(`It is stopped 5 s after its ${limit}`);
  });

  test("stopped while it watches the start, it reports the running process", async () => {
    const on = scene({
      start: async () => {
        const one = handle({ info: INFO, wait: () => Promise.reject(on.call.signal.reason) });
        on.abort();
        return one;
      },
    });
    await expect(use("start_process", { command: "dev" }, on)).rejects.toThrow("stopped");
    expect(on.partials).toEqual(["proc_1.1 was started, and runs in the background."]);
  });

  test("the host's time limit of shell applies in its background too, and not to start_process", async () => {
    const limits: unknown[] = [];
    const start: CallProcesses["start"] = async (_, options) => {
      limits.push(options?.timeoutMs);
      return handle({ info: INFO, wait: async () => undefined });
    };
    const options = { timeoutMs: 60_000 };
    await use("shell", { command: "dev", background: true }, scene({ start }), options);
    await use("start_process", { command: "dev" }, scene({ start }), options);
    expect(limits).toEqual([60_000, undefined]);
  });

  test("a process that fails at once is reported at once; `background` of shell does the same", async () => {
    const waits: unknown[] = [];
    const wait: ProcessHandle["wait"] = async (options) => {
      waits.push(options?.limitMs);
      return { ...COMPLETED, exit: { code: 127 } };
    };
    const on = scene({ start: async () => handle({ wait }), run: () => expect.unreachable("it is not run") });
    expect(await use("start_process", { command: "sevrer" }, on)).toContain("Ended with exit code 127");
    expect(await use("shell", { command: "sevrer", background: true }, on)).toContain("Ended with exit code 127");
    expect(waits).toEqual([START_WATCH_MS, START_WATCH_MS]);
  });
});

describe("read_output", () => {
  const on = (text: string, live: boolean): Scene =>
    scene({
      get: async () => handle({ info: live ? INFO : undefined, output: async () => output(text, { ended: !live }) }),
    });
  const told = async (input: object, { text = "0123456789", live = false } = {}): Promise<string> =>
    String(await use("read_output", { processId: ID, ...input }, on(text, live)));

  test("without an offset it returns the end; with one, the output from there and the next offset", async () => {
    expect(await told({ bytesMax: 4 })).toBe(
      "Bytes 6 to 10 of 10, stdout and stderr together. That was the last. proc_1.1 has ended.\n6789",
    );
    expect(await told({ bytesMax: 4, offset: 2, stream: "stdout" })).toBe(
      "Bytes 2 to 6 of 10, stdout. The next begin at offset 6. proc_1.1 has ended.\n2345",
    );
  });

  test("a running process may write more", async () => {
    expect(await told({ offset: 5 }, { live: true })).toContain(
      "More may come, from offset 10 on. proc_1.1 is running.",
    );
    expect(await told({ offset: 10 }, { live: true })).toContain("There is nothing from byte 10 on: 10 bytes so far");
    expect(await told({ stream: "stderr" }, { live: true })).toContain("0 bytes so far, stderr.");
  });

  test("output that was not kept is reported as such", async () => {
    const gone = scene({ get: async () => handle({ output: async () => undefined }) });
    expect(await use("read_output", { processId: ID }, gone)).toBe("Nothing is kept of the output of proc_1.1.");
  });
});

describe("wait_process and stop_process", () => {
  test("waits until the end, or up to the limit", async () => {
    const limits: unknown[] = [];
    const wait: ProcessHandle["wait"] = async (options) => {
      limits.push(options?.limitMs);
      return options?.limitMs === 5_000 ? undefined : COMPLETED;
    };
    const on = scene({ get: async () => handle({ wait }) });
    expect(await use("wait_process", { processId: ID }, on)).toContain("Ended with exit code 0");
    expect(await use("wait_process", { processId: ID, limitMs: 5_000 }, on)).toBe(
      "proc_1.1 is still running after another 5 s.\nOutput, 6 bytes:\nhello\n",
    );
    expect(limits).toEqual([60_000, 5_000]);
  });

  test("a stopped wait leaves the process running, and keeps its output", async () => {
    const wait: ProcessHandle["wait"] = (options) =>
      new Promise((_, reject) => {
        options?.signal?.addEventListener("abort", () => reject(options.signal?.reason));
      });
    const on = scene({ get: async () => handle({ wait }) });
    const coming = use("wait_process", { processId: ID }, on);
    coming.catch(() => {});
    await settled();
    on.abort();
    await expect(coming).rejects.toThrow("stopped");
    expect(on.partials.at(-1)).toBe("Output, 6 bytes:\nhello\n");
  });

  test("a stop is recorded as the agent's, and its outcome is reported", async () => {
    const reasons: unknown[] = [];
    const cancel: ProcessHandle["cancel"] = async (reason) => {
      reasons.push(reason);
      return { kind: "stopping", since: 7, first: true };
    };
    const outcome = { kind: "cancelled", reason: { kind: "user", by: "the agent" } } as const;
    const on = scene({ get: async () => handle({ cancel, wait: async () => ({ ...COMPLETED, outcome }) }) });
    const told = await use("stop_process", { processId: ID, reason: "wrong port" }, on);
    expect(reasons).toEqual([{ kind: "user", by: "the agent", note: "wrong port" }]);
    expect(told).toContain("proc_1.1: Nothing of it is left.\nSTOPPED by the agent.");
  });

  test("an ended, a surviving and a lost process are not reported as stopped", async () => {
    const stop = async (result: ProcessResult | undefined): Promise<string> => {
      const on = scene({ get: async () => handle({ wait: async () => result }) });
      return String(await use("stop_process", { processId: ID }, on));
    };
    expect(await stop(COMPLETED)).toContain("It had ended by itself before it could be stopped");
    expect(await stop(undefined)).toContain("is being stopped, and has not ended within 35 s");
    expect(await stop({ processId: ID, outcome: { kind: "lost" } })).toMatch(/^proc_1\.1: LOST/);
  });
});

describe("approval", () => {
  const judge = (name: ProcessToolName, input: Json, options?: ProcessToolsOptions) =>
    processTools(options)[name].judge(input, { id: "1" });
  const command = { command: "rm -rf dist" };

  test("is required for any command; for the session it covers that command in that directory", async () => {
    const scope = 'shell ["rm -rf dist",null,false]';
    expect(await judge("shell", command)).toEqual({ kind: "takes", approval: { scope } });
    expect(await judge("shell", { ...command, cwd: "/" })).not.toMatchObject({ approval: { scope } });
    expect(await judge("shell", { ...command, background: true })).not.toMatchObject({ approval: { scope } });
    expect(await judge("start_process", command)).not.toMatchObject({ approval: { scope } });
    for (const name of ["read_output", "wait_process", "stop_process"] as const) {
      expect(await judge(name, { processId: ID })).toEqual({ kind: "takes", approval: false });
    }
  });

  test("is required if the callback throws, and then remembered for one command", async () => {
    const approval = { shell: () => Promise.reject(new Error("no rules today")) };
    expect(await judge("shell", command, { approval })).toEqual({
      kind: "takes",
      approval: {
        scope: 'shell ["rm -rf dist",null,false]',
        note: "The approval callback failed: no rules today",
      },
    });
  });

  test("can be configured for each tool and each input", async () => {
    const approval = {
      shell: ({ command: asked }: { command: unknown }) => asked !== "ls" && { note: "Look twice.", scope: "any" },
      start_process: false,
      stop_process: true,
    };
    expect(await judge("shell", { command: "ls" }, { approval })).toEqual({ kind: "takes", approval: false });
    expect(await judge("shell", command, { approval })).toMatchObject({
      approval: { note: "Look twice.", scope: "any" },
    });
    expect(await judge("start_process", command, { approval })).toEqual({ kind: "takes", approval: false });
    expect(await judge("stop_process", { processId: ID }, { approval })).toEqual({ kind: "takes", approval: true });
  });
});

test.each<readonly [ProcessToolName, Json, string]>([
  ["shell", {}, "command is missing"],
  ["shell", "ls", "the input must be an object"],
  ["shell", { command: "  " }, "command must be a text"],
  ["shell", { command: [] }, "command must be a text"],
  ["shell", { command: ["ls", 1] }, "command must be a text"],
  ["shell", { command: "x".repeat(COMMAND_CHARS_MAX + 1) }, "write a longer one into a file"],
  ["shell", { command: "ls", env: {} }, "there is no `env`; there are command, cwd, timeoutMs, background"],
  ["shell", { command: "ls", background: "yes" }, "background must be true or false"],
  ["start_process", { command: "ls", timeoutMs: 0 }, "timeoutMs must be a whole number from 1"],
  ["read_output", { processId: ID, stream: "stdin" }, "stream must be one of all, stdout, stderr"],
  ["read_output", { processId: ID, offset: -1 }, "offset must be a whole number from 0"],
  ["wait_process", { processId: ID, limitMs: 1e9 }, "limitMs must be a whole number from 1 to 600000"],
  ["stop_process", { processId: "" }, "processId must be a text"],
])("%s refuses %j", async (name, input, issue) => {
  expect(await processTools()[name].judge(input, { id: "1" })).toEqual({
    kind: "refuses",
    issues: [expect.stringContaining(issue)],
  });
});

test("null counts as absent; a list is passed on unchanged", async () => {
  const asked: unknown[] = [];
  const run: CallProcesses["run"] = async (given) => {
    asked.push(given);
    return { kind: "ended", ...COMPLETED };
  };
  await use("shell", { command: ["ls", ""], cwd: null, timeoutMs: null, background: null }, scene({ run }));
  expect(asked).toEqual([["ls", ""]]);
});

test("invalid options are refused when the tools are created", () => {
  expect(() => processTools({ timeoutMs: 0.5 })).toThrow("`timeoutMs` of processTools() must be a whole number");
  expect(() => processTools({ backgroundAfterMs: 0 })).toThrow("`backgroundAfterMs` of");
  expect(() => processTools({ outputBytesMax: 9 })).toThrow("must be a whole number from 1024.");
  expect(() => processTools({ feedback: "loud" as never })).toThrow(
    "`feedback` must be one of wake, next-turn, silent.",
  );
  expect(() => processTools({ aproval: {} } as never)).toThrow("processTools() has no `aproval`. It has approval,");
  expect(() => processTools({ approval: { shel: false } } as never)).toThrow("has no `shel`. It has shell,");
});
