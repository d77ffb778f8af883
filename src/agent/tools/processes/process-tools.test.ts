// The tools for processes with processes that are made up: what a model is told, whatever becomes of them.
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

/** Output as the files of a process tell it; of ASCII, so that a character is a byte. */
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
    ask: () => Promise.reject(new Error("nobody is there")),
  };
  return { call, clock, partials, told, abort: () => aborting.abort(new Error("stopped")) };
}

function use(name: ProcessToolName, input: Json, { call }: Scene, options?: ProcessToolsOptions): Promise<unknown> {
  return processTools(options)[name].execute({ ...call, name, input });
}

describe("shell", () => {
  test("says how the command ended, how long it took, and what it said", async () => {
    expect(await use("shell", { command: "make" }, scene({}))).toBe(
      "Ended with exit code 0 after 1.2 s.\nOutput, 6 bytes:\nhello\n",
    );
  });

  test("a signal that was not ours is told by its name, and silence is said", async () => {
    const exit = { signal: "SIGSEGV" };
    const get = async (): Promise<ProcessHandle> => handle({ output: async () => output("") });
    const on = scene({ run: async () => ({ kind: "ended", ...COMPLETED, exit }), get });
    expect(await use("shell", { command: "crash" }, on)).toBe(
      "Ended by SIGSEGV (not sent by us) after 1.2 s.\nIt has written nothing.",
    );
  });

  test("of a long output the first and the last are told, with the way to the rest", async () => {
    const text = `${"a".repeat(1_000)}${"b".repeat(1_000)}${"c".repeat(1_000)}`;
    const on = scene({ get: async () => handle({ output: async () => output(text) }) });
    const told = String(await use("shell", { command: "make" }, on, { outputBytesMax: 1_024 }));
    expect(told).toContain("Output, the first and the last of 3,000 bytes:");
    expect(told).toContain(
      '\n… 1,976 bytes left out; read them with read_output {"processId":"proc_1.1","offset":512} …\n',
    );
    expect(told.match(/[abc]{9,}/g)).toEqual(["a".repeat(512), "c".repeat(512)]);
  });

  test("its time limit is the shorter of the host's and the model's, and is told as what stopped it", async () => {
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
    expect(told).toContain("STOPPED by its time limit of 1 min 30 s. It did not come to its end: ended by SIGTERM");
  });

  test("one that takes long is moved to the background, and the model learns its id and what comes next", async () => {
    const asked: unknown[] = [];
    const run: CallProcesses["run"] = async (_, options) => {
      asked.push(options);
      return { kind: "background", process: handle({ info: INFO }) } satisfies CommandResult;
    };
    const told = await use("shell", { command: "make", cwd: "sub" }, scene({ run }));
    expect(asked).toEqual([{ cwd: "sub", backgroundAfterMs: 60_000, feedback: "wake" }]);
    expect(told).toContain("It is not over after 1 min, and goes on in the background as proc_1.1.");
    expect(told).toContain("You are told when it ends by itself");
    expect(told).toContain("hello");
  });

  test("while it goes on, people see the end of its output on a pace, and it is put aside", async () => {
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

  test("while it goes on, people see only the end of long output, not glued to its beginning", async () => {
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

  test("stopped, it keeps what it had said, from the first moment of the stop to its last word", async () => {
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

  test("what has ended by itself before the stop reached it is told as what it is", async () => {
    const on = scene({
      run: async () => {
        on.abort();
        return { kind: "ended", ...COMPLETED };
      },
    });
    expect(await use("shell", { command: "make" }, on)).toContain("exit code 0");
  });

  test("whoever outlived every signal is named", async () => {
    const on = scene({ run: async () => ({ kind: "ended", ...COMPLETED, escaped: [77, 78] }) });
    expect(await use("shell", { command: "make" }, on)).toContain(
      "2 of its processes outlived every signal and may still be going on: 77, 78.",
    );
  });

  test("if the files are gone, what the log has of its output is told", async () => {
    const note = { bytes: 9_000, stdoutBytes: 9_000, stderrBytes: 0, tail: "the end" };
    const get = async (): Promise<ProcessHandle> => handle({ output: async () => undefined });
    const on = scene({ run: async () => ({ kind: "ended", ...COMPLETED, output: note }), get });
    expect(await use("shell", { command: "make" }, on)).toContain("of 9000 bytes:\nthe end");
  });
});

describe("what cannot be done is told with what to do about it", () => {
  const failing = (error: ControlError): Scene => scene({ run: () => Promise.reject(error) });

  test.each([
    ["not_started", "Nothing was run. Check the name of the program"],
    ["uncontained", "Do not try again: say what is missing."],
    ["overloaded", "Stop one first, with stop_process. Going on in this session:\n- proc_1.1: make"],
    ["queue_full", "End your turn"],
    ["invalid", "Correct the input"],
    ["shutting_down", "It is so."],
  ] as const)("%s", async (code, advice) => {
    const coming = use("shell", { command: "make" }, failing(new ControlError(code, "It is so.")));
    await expect(coming).rejects.toMatchObject({ code, message: expect.stringContaining(advice) });
    await expect(coming).rejects.toMatchObject({ message: expect.stringContaining("It is so.") });
  });

  test.each(["read_output", "wait_process", "stop_process"] as const)(
    "%s of nobody lists who there is",
    async (name) => {
      const get = (): Promise<never> => Promise.reject(new ControlError("not_found", "There is no process proc_1.9."));
      const some = use(name, { processId: "proc_1.9" }, scene({ get }));
      await expect(some).rejects.toThrow("There is no process proc_1.9.\nGoing on in this session:\n- proc_1.1: make");
      const none = use(name, { processId: "proc_1.9" }, scene({ get, list: async () => [] }));
      await expect(none).rejects.toThrow("No process is going on in this session.");
    },
  );
});

describe("start_process", () => {
  test("answers with the id, where it is held, and what will be heard of it", async () => {
    const told = await use("start_process", { command: ["npm", "run", "dev"] }, scene({}));
    expect(told).toContain("proc_1.1 goes on in the background (pid 42, held by tier namespace).");
    expect(told).toContain("also if nobody asks you anything until then");
  });

  test.each([
    ["next-turn", "the next time you are asked something"],
    ["silent", "You are not told when it ends."],
  ] as const)("the host's feedback is what is asked for and told: %s", async (feedback, words) => {
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
    const limit = feedback === "silent" ? "start. " : "start, and you are told of that, too. ";
    expect(told).toContain(`It is stopped 5 s after its ${limit}`);
  });

  test("stopped while it looks whether it goes well, it leaves word of what goes on", async () => {
    const on = scene({
      start: async () => {
        const one = handle({ info: INFO, wait: () => Promise.reject(on.call.signal.reason) });
        on.abort();
        return one;
      },
    });
    await expect(use("start_process", { command: "dev" }, on)).rejects.toThrow("stopped");
    expect(on.partials).toEqual(["proc_1.1 was started, and goes on in the background."]);
  });

  test("the host's limit for shell goes for its background, and not for servers that are started as such", async () => {
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

  test("one that fails at once is told at once; `background` of shell is the same", async () => {
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

  test("without an offset it is the end; with one, what follows it, and where the next begins", async () => {
    expect(await told({ bytesMax: 4 })).toBe(
      "Bytes 6 to 10 of 10, stdout and stderr together. That was the last. proc_1.1 has ended.\n6789",
    );
    expect(await told({ bytesMax: 4, offset: 2, stream: "stdout" })).toBe(
      "Bytes 2 to 6 of 10, stdout. The next begin at offset 6. proc_1.1 has ended.\n2345",
    );
  });

  test("of one that goes on, more may come", async () => {
    expect(await told({ offset: 5 }, { live: true })).toContain(
      "More may come, from offset 10 on. proc_1.1 is going on.",
    );
    expect(await told({ offset: 10 }, { live: true })).toContain("There is nothing from byte 10 on: 10 bytes so far");
    expect(await told({ stream: "stderr" }, { live: true })).toContain("0 bytes so far, stderr.");
  });

  test("nothing kept is said", async () => {
    const gone = scene({ get: async () => handle({ output: async () => undefined }) });
    expect(await use("read_output", { processId: ID }, gone)).toBe("Nothing is kept of the output of proc_1.1.");
  });
});

describe("wait_process and stop_process", () => {
  test("waits to the end, or as long as it may", async () => {
    const limits: unknown[] = [];
    const wait: ProcessHandle["wait"] = async (options) => {
      limits.push(options?.limitMs);
      return options?.limitMs === 5_000 ? undefined : COMPLETED;
    };
    const on = scene({ get: async () => handle({ wait }) });
    expect(await use("wait_process", { processId: ID }, on)).toContain("Ended with exit code 0");
    expect(await use("wait_process", { processId: ID, limitMs: 5_000 }, on)).toBe(
      "proc_1.1 is still going on after another 5 s.\nOutput, 6 bytes:\nhello\n",
    );
    expect(limits).toEqual([60_000, 5_000]);
  });

  test("a wait that is stopped leaves the process, and keeps what it had said", async () => {
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

  test("a stop is in the agent's name, and what became of it is told", async () => {
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

  test("one that had ended, one that does not end, and one that is lost are not said to be stopped", async () => {
    const stop = async (result: ProcessResult | undefined): Promise<string> => {
      const on = scene({ get: async () => handle({ wait: async () => result }) });
      return String(await use("stop_process", { processId: ID }, on));
    };
    expect(await stop(COMPLETED)).toContain("It had ended by itself before it could be stopped");
    expect(await stop(undefined)).toContain("is being stopped, and has not ended within 35 s");
    expect(await stop({ processId: ID, outcome: { kind: "lost" } })).toMatch(/^proc_1\.1: LOST/);
  });
});

describe("who is asked first", () => {
  const judge = (name: ProcessToolName, input: Json, options?: ProcessToolsOptions) =>
    processTools(options)[name].judge(input, { id: "1" });
  const command = { command: "rm -rf dist" };

  test("people, before any command; an approval for the session is for that command in that directory", async () => {
    const scope = 'shell ["rm -rf dist",null,false]';
    expect(await judge("shell", command)).toEqual({ kind: "takes", approval: { scope } });
    expect(await judge("shell", { ...command, cwd: "/" })).not.toMatchObject({ approval: { scope } });
    expect(await judge("shell", { ...command, background: true })).not.toMatchObject({ approval: { scope } });
    expect(await judge("start_process", command)).not.toMatchObject({ approval: { scope } });
    for (const name of ["read_output", "wait_process", "stop_process"] as const) {
      expect(await judge(name, { processId: ID })).toEqual({ kind: "takes", approval: false });
    }
  });

  test("a rule that fails has not said that nobody need be asked; what is remembered is one command", async () => {
    const approval = { shell: () => Promise.reject(new Error("no rules today")) };
    expect(await judge("shell", command, { approval })).toEqual({
      kind: "takes",
      approval: {
        scope: 'shell ["rm -rf dist",null,false]',
        note: "Whether this needs an approval could not be told: no rules today",
      },
    });
  });

  test("the host may say otherwise, for each tool and each input", async () => {
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
  ["shell", "ls", "an object is wanted"],
  ["shell", { command: "  " }, "command is a text"],
  ["shell", { command: [] }, "command is a text"],
  ["shell", { command: ["ls", 1] }, "command is a text"],
  ["shell", { command: "x".repeat(COMMAND_CHARS_MAX + 1) }, "write a longer one into a file"],
  ["shell", { command: "ls", env: {} }, "there is no `env`; there are command, cwd, timeoutMs, background"],
  ["shell", { command: "ls", background: "yes" }, "background is true or false"],
  ["start_process", { command: "ls", timeoutMs: 0 }, "timeoutMs is a whole number from 1"],
  ["read_output", { processId: ID, stream: "stdin" }, "stream is one of all, stdout, stderr"],
  ["read_output", { processId: ID, offset: -1 }, "offset is a whole number from 0"],
  ["wait_process", { processId: ID, limitMs: 1e9 }, "limitMs is a whole number from 1 to 600000"],
  ["stop_process", { processId: "" }, "processId is a text"],
])("%s does not take %j", async (name, input, issue) => {
  expect(await processTools()[name].judge(input, { id: "1" })).toEqual({
    kind: "refuses",
    issues: [expect.stringContaining(issue)],
  });
});

test("what a provider sends as null was not given; a list goes on as it is", async () => {
  const asked: unknown[] = [];
  const run: CallProcesses["run"] = async (given) => {
    asked.push(given);
    return { kind: "ended", ...COMPLETED };
  };
  await use("shell", { command: ["ls", ""], cwd: null, timeoutMs: null, background: null }, scene({ run }));
  expect(asked).toEqual([["ls", ""]]);
});

test("what makes no sense is refused when the tools are made", () => {
  expect(() => processTools({ timeoutMs: 0.5 })).toThrow("`timeoutMs` of processTools() is a whole number from 1.");
  expect(() => processTools({ backgroundAfterMs: 0 })).toThrow("`backgroundAfterMs` of");
  expect(() => processTools({ outputBytesMax: 9 })).toThrow("is a whole number from 1024.");
  expect(() => processTools({ feedback: "loud" as never })).toThrow("`feedback` is one of wake, next-turn, silent.");
  expect(() => processTools({ aproval: {} } as never)).toThrow("processTools() has no `aproval`. It has approval,");
  expect(() => processTools({ approval: { shel: false } } as never)).toThrow("has no `shel`. It has shell,");
});
