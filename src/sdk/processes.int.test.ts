// Processes of sessions and tools, with real children.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { gate, logOf, openTestBelay, untilAborted } from "../../test/fixtures/belay.ts";
import { calls, json } from "../../test/fixtures/engine-processes.ts";
import { heard, hostileTree, mark, marked, markedAtLeast } from "../../test/fixtures/marked-process.ts";
import { verifyAtRest } from "../core/read/verify.ts";
import type { CommandResult } from "../ports/spawner.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { systemClock } from "../system/system-clock.ts";
import { type Belay, openBelay } from "./belay.ts";
import type { Session } from "./session.ts";

const open: Belay[] = [];
afterEach(async () => {
  for (const belay of open.splice(0)) await belay.close({ mode: "cancel" });
});

async function house(...args: Parameters<typeof openTestBelay>): ReturnType<typeof openTestBelay> {
  const made = await openTestBelay(...args);
  open.push(made.belay);
  return made;
}

async function types(session: Session): Promise<readonly string[]> {
  return (await logOf(session)).map(({ type }) => type);
}

async function isSound(session: Session): Promise<void> {
  expect(verifyAtRest(await logOf(session))).toEqual([]);
}

test("a failed start leaves nothing behind of the process support", async () => {
  const place = mkdtempSync(join(tmpdir(), "belay-failed-start-"));
  const before = process.env.TMPDIR;
  process.env.TMPDIR = place;
  try {
    const store = new MemoryStore({ clock: systemClock });
    store.unattended = () => Promise.reject(new Error("The disk does not answer."));
    const opening = openBelay({ agent: () => undefined, store, processes: { requireTier: "group" } });
    await expect(opening).rejects.toThrow("The disk does not answer.");
    expect(readdirSync(place)).toEqual([]);
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    rmSync(place, { recursive: true, force: true });
  }
});

describe("a foreground command", () => {
  test("returns its exit and its output", async () => {
    let ran: CommandResult | undefined;
    const { belay } = await house({
      go: calls(async (call) => {
        ran = await call.processes.run("echo out; echo err >&2; exit 3");
        return ran;
      }),
    });
    const session = await belay.createSession();
    await session.prompt("go").outcome;
    expect(ran).toMatchObject({
      kind: "ended",
      outcome: { kind: "completed" },
      exit: { code: 3 },
      output: { bytes: 8, stdoutBytes: 4, stderrBytes: 4, tail: "out\nerr\n" },
    });
    expect(await types(session)).toEqual([
      ...["session.created", "run.accepted", "run.started", "turn.requested", "call.requested"],
      ...["process.requested", "process.started", "process.settled"],
      ...["call.settled", "turn.settled", "run.settled"],
    ]);
    await isSound(session);
  });

  test("given as a list of arguments is not run by a shell", async () => {
    const { belay } = await house({ go: calls((call) => call.processes.run(["echo", "$HOME; `id`"])) });
    const session = await belay.createSession();
    expect(await session.prompt("go").text()).toContain("$HOME; `id`\\n");
  });

  test("that does not exist is refused, and the call continues", async () => {
    const { belay } = await house({
      go: calls((call) => call.processes.run(["no-such-program"]).catch((error: unknown) => String(error))),
    });
    const session = await belay.createSession();
    expect(await session.prompt("go").text()).toContain("no-such-program");
    expect(await logOf(session)).toContainEqual(
      expect.objectContaining({
        type: "process.settled",
        outcome: expect.objectContaining({ kind: "failed", code: "not_started" }),
      }),
    );
    await isSound(session);
  });

  test("that exceeds its time limit is stopped, and its output so far is kept", async () => {
    const { belay } = await house({
      go: calls((call) => call.processes.run("echo soon; sleep 600", { timeoutMs: 1_000 })),
    });
    const session = await belay.createSession();
    const text = await session.prompt("go").text();
    expect(JSON.parse(text).value).toMatchObject({
      outcome: { kind: "cancelled", reason: { kind: "timeout", limitMs: 1_000 } },
      // SIGKILL if the machine is too busy to end it within the grace period.
      exit: { signal: expect.stringMatching(/^SIG(TERM|KILL)$/) },
      output: { tail: "soon\n" },
    });
  });

  test("that exceeds its wait limit moves to the background, and reports its end", async () => {
    const { belay } = await house({
      go: calls(async (call) => {
        const ran = await call.processes.run("read line; echo $line", {
          ...{ stdin: "open", backgroundAfterMs: 20, feedback: "wake" },
        });
        return ran.kind === "background" ? ran.process.id : "ended too soon";
      }),
    });
    const session = await belay.createSession();
    await session.prompt("go").outcome;
    const [info] = await session.processes.list();
    expect(info).toMatchObject({ owner: session.id, feedback: "wake", title: "read line; echo $line" });
    const child = await session.processes.get(info?.id ?? "");
    await child.write("hello\n");
    const result = await child.wait();
    expect(result).toMatchObject({ outcome: { kind: "completed" }, exit: { code: 0 }, output: { tail: "hello\n" } });
    const [woken] = await session.runs({ limit: 1 });
    const run = await belay.run(woken?.id ?? "");
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(await types(session)).toContain("process.detached");
    await isSound(session);
  });
});

describe("G19: a process tree ends with its owner, and with no other", () => {
  test("the cancel of a run ends the trees of its calls, not those in the background", {
    meta: { id: "G19/run-cancel-ends-trees" },
  }, async () => {
    const [mine, kept] = [mark(), mark()];
    const { belay } = await house({
      go: calls(async (call) => {
        await call.processes.start(hostileTree(kept), { feedback: "silent" });
        return call.processes.run(hostileTree(mine));
      }),
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await markedAtLeast(mine, 4);
    await markedAtLeast(kept, 4);
    await run.cancel();
    expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "user" } });
    expect(marked(mine)).toEqual([]);
    expect(marked(kept)).toHaveLength(4);
    expect(await session.processes.list()).toHaveLength(1);
    await session.cancel({ waitMs: 10_000 });
    expect(marked(kept)).toEqual([]);
    await isSound(session);
  });

  test("the cancel of a call does not affect its siblings", async () => {
    const [one, other] = [mark(), mark()];
    const { belay } = await house({
      go: async (turn) => {
        const both = [one, other].map((id) =>
          turn.call("shell", id, async (call) => json(await call.processes.run(hostileTree(id)))),
        );
        return JSON.stringify((await Promise.all(both)).map(({ kind }) => kind));
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await markedAtLeast(one, 4);
    await markedAtLeast(other, 4);
    const [first] = (await session.explain()).live?.calls ?? [];
    const receipt = await belay.cancel(first?.callId ?? "");
    expect(receipt).toMatchObject({ kind: "stopping", ended: { kind: "settled", outcome: { kind: "cancelled" } } });
    expect([marked(one).length, marked(other).length].toSorted()).toEqual([0, 4]);
    await run.cancel();
    await run.outcome;
    expect([...marked(one), ...marked(other)]).toEqual([]);
    await isSound(session);
  });

  test("G17: the output of a stopped command is kept with its call", async () => {
    // Enough time for a busy machine: this test checks what is kept, not how soon.
    const { belay } = await house(
      { go: calls((call) => call.processes.run("echo partial; exec sleep 600")) },
      { graceMs: 20_000 },
    );
    const session = await belay.createSession();
    const run = session.prompt("go");
    for await (const event of session.events()) if (event.type === "process.started") break;
    const [child] = await session.processes.list();
    await heard(await session.processes.get(child?.id ?? ""), "partial");
    await run.cancel();
    await run.outcome;
    const settled = (await logOf(session)).find(({ type }) => type === "call.settled");
    expect(settled).toMatchObject({
      outcome: { kind: "cancelled" },
      result: { processId: child?.id, exit: { signal: "SIGTERM" }, output: { tail: "partial\n" } },
    });
    await isSound(session);
  });

  test("the cancel of a process does not affect its call", async () => {
    const id = mark();
    const { belay } = await house({ go: calls((call) => call.processes.run(hostileTree(id))) });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await markedAtLeast(id, 4);
    const [info] = await session.processes.list();
    expect(await belay.cancel(info?.id ?? "", { reason: "enough" })).toMatchObject({
      kind: "stopping",
      first: true,
      ended: { kind: "settled", outcome: { kind: "cancelled", reason: { kind: "user", note: "enough" } } },
    });
    expect(marked(id)).toEqual([]);
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(await belay.cancel(info?.id ?? "")).toMatchObject({ kind: "settled", outcome: { kind: "cancelled" } });
    await isSound(session);
  });

  test("G12: a process that is stopped alone is killed after `processes.graceMs`", async () => {
    const { belay } = await house({}, { graceMs: 600_000, processes: { graceMs: 20 } });
    const session = await belay.createSession();
    const deaf = await session.processes.start("trap '' TERM; echo deaf; while :; do sleep 1; done");
    await heard(deaf, "deaf");
    await deaf.cancel();
    expect(await deaf.wait()).toMatchObject({ outcome: { kind: "cancelled" }, exit: { signal: "SIGKILL" } });
  });

  test("a call that returns while its process runs ends the process", async () => {
    const id = mark();
    const { belay } = await house({
      go: calls(async (call) => {
        void call.processes.run(hostileTree(id));
        await markedAtLeast(id, 4);
        return "left";
      }),
    });
    const session = await belay.createSession();
    expect(await session.prompt("go").outcome).toEqual({ kind: "completed" });
    expect(marked(id)).toEqual([]);
    await isSound(session);
  });

  test("closing a session ends its background processes, and no process can start afterwards", {
    meta: { id: "G19/session-close-ends-trees" },
  }, async () => {
    const id = mark();
    const { belay } = await house();
    const session = await belay.createSession();
    const child = await session.processes.start(hostileTree(id));
    await heard(child, "up");
    await markedAtLeast(id, 4);
    expect(await session.close()).toMatchObject({ kind: "stopping", runs: [], processes: [{ processId: child.id }] });
    expect(await child.wait()).toMatchObject({ outcome: { kind: "cancelled", reason: { kind: "closed" } } });
    expect(marked(id)).toEqual([]);
    await expect(session.processes.start("true")).rejects.toMatchObject({ code: "closed" });
    await isSound(session);
  });

  test("a session cancel can keep background processes", async () => {
    const { belay } = await house();
    const session = await belay.createSession();
    const child = await session.processes.start(["sleep", mark()]);
    expect(await session.cancel({ background: "keep" })).toEqual({ kind: "idle", runs: [] });
    expect(child.info?.phase).toBe("running");
    expect(await session.cancel()).toMatchObject({ kind: "stopping", processes: [{ processId: child.id }] });
    await child.wait();
  });

  test("a shutdown ends all processes, and records that", { meta: { id: "G19/shutdown-ends-trees" } }, async () => {
    const id = mark();
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    await heard(await session.processes.start(hostileTree(id)), "up");
    await markedAtLeast(id, 4);
    expect(await belay.close()).toEqual({ unfinished: [] });
    expect(marked(id)).toEqual([]);
  });

  test("a tool that ignores its signal is abandoned, and its tree is ended all the same", async () => {
    const id = mark();
    const { belay } = await house({
      go: calls(async (call) => {
        void call.processes.run(hostileTree(id));
        return new Promise(() => {});
      }),
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await markedAtLeast(id, 4);
    await run.cancel();
    expect(await run.outcome).toMatchObject({ kind: "cancelled", abandoned: ["shell"] });
    expect(marked(id)).toEqual([]);
  });
});

describe("G22: a background process is reported once", () => {
  test("a waiter that got the result is the report, and no turn reports it again", async () => {
    const { belay } = await house({
      go: calls(async (call) => {
        const child = await call.processes.start("echo done");
        return child.wait();
      }),
      next: async (turn) => JSON.stringify((await turn.transcript()).filter(({ role }) => role === "note")),
    });
    const session = await belay.createSession();
    expect(await session.prompt("go").text()).toContain("done\\n");
    expect(await session.prompt("next").text()).toBe("[]");
    await isSound(session);
  });

  test("if its waiter was stopped, the next turn reports it", async () => {
    const waiting = gate();
    const { belay } = await house({
      go: calls(async (call) => {
        const child = await call.processes.start("read line; echo done", { stdin: "open" });
        const result = child.wait();
        waiting.open();
        await Promise.race([result, untilAborted(call.signal)]);
        return untilAborted(call.signal);
      }),
      next: async (turn) => JSON.stringify((await turn.transcript()).filter(({ role }) => role === "note")),
    });
    const session = await belay.createSession();
    const run = session.prompt("go");
    await waiting.passed;
    const [info] = await session.processes.list();
    const child = await session.processes.get(info?.id ?? "");
    await child.write("x\n");
    await child.wait();
    await run.cancel();
    await run.outcome;
    expect(JSON.parse(await session.prompt("next").text())).toHaveLength(1);
    await isSound(session);
  });

  test("`silent` only records its end; a cancelled process reports nothing, and keeps its output", async () => {
    const { belay } = await house({
      next: async (turn) => JSON.stringify((await turn.transcript()).filter(({ role }) => role === "note")),
    });
    const session = await belay.createSession();
    const silent = await session.processes.start("echo quiet", { feedback: "silent" });
    expect(await silent.wait()).toMatchObject({ outcome: { kind: "completed" } });
    const stopped = await session.processes.start("echo partial; exec sleep 600", { feedback: "wake" });
    await heard(stopped, "partial");
    await belay.cancel(stopped.id);
    expect(await session.prompt("next").text()).toBe("[]");
    expect((await (await stopped.output())?.read())?.text).toBe("partial\n");
    await isSound(session);
  });
});

describe("a restart", () => {
  test("processes ended by a shutdown stay ended, with their outcome in the log", async () => {
    const dir = mkdtempSync(join(tmpdir(), "belay-test-"));
    try {
      const file = join(dir, "belay.db");
      const first = await openTestBelay({}, { store: file });
      const session = await first.belay.createSession({ id: "ses_restart" });
      await session.processes.start("sleep 600", { feedback: "wake" });
      await first.belay.close();
      const second = await house({}, { store: file });
      const again = second.belay.session("ses_restart");
      expect(await again.processes.list()).toEqual([]);
      expect(await again.processes.history()).toMatchObject([{ outcome: { kind: "cancelled" } }]);
      await isSound(again);
    } finally {
      for (const belay of open.splice(0)) await belay.close();
      rmSync(dir, { recursive: true, force: true });
    }
  });
});

describe("a process handle", () => {
  test("writes to the process, ends its input, and reads by offset", async () => {
    const { belay } = await house();
    const session = await belay.createSession();
    const child = await session.processes.start(["cat"], { stdin: "open" });
    await child.write("grüße\n");
    await heard(child, "grüße");
    child.endInput();
    expect(await child.wait()).toMatchObject({ exit: { code: 0 } });
    const output = await child.output();
    expect(await output?.read({ offset: 3 })).toMatchObject({ from: 4, text: "ße\n", end: true });
    await expect(child.write("more")).rejects.toMatchObject({ code: "conflict" });
  });

  test("reports a wait that reached its limit", async () => {
    const { belay } = await house();
    const session = await belay.createSession();
    const child = await session.processes.start(["sleep", mark()]);
    expect(await child.wait({ limitMs: 10 })).toBeUndefined();
    await child.cancel();
    expect(await child.wait()).toMatchObject({ outcome: { kind: "cancelled" } });
  });

  test("of another session, or of an unknown process, is not found", async () => {
    const { belay } = await house();
    const [one, other] = [await belay.createSession(), await belay.createSession()];
    const child = await one.processes.start("true");
    await expect(other.processes.get(child.id)).rejects.toMatchObject({ code: "not_found" });
    await expect(one.processes.get("proc_nobody.1")).rejects.toMatchObject({ code: "not_found" });
    await expect(one.processes.get("nonsense")).rejects.toMatchObject({ code: "invalid" });
    await child.wait();
  });

  test("refuses bad options, and leaves no trace", async () => {
    const { belay } = await house();
    const session = await belay.createSession();
    const bad: readonly [unknown, unknown][] = [
      ["", {}],
      [[], {}],
      [["ok", 1], {}],
      ["true", { cwd: "" }],
      ["true", { feedback: "loud" }],
      ["true", { profile: "all" }],
      ["true", { terminal: { columns: 0, rows: 1 } }],
      ["true", { limits: { processesMax: -1 } }],
      ["true", { limits: { wishes: 3 } }],
      ["true", { env: { A: 1 } }],
      ["true", { timeoutMs: -1 }],
      ["true", { colour: "red" }],
    ];
    for (const [command, options] of bad) {
      await expect(session.processes.start(command as string, options as object)).rejects.toMatchObject({
        code: "invalid",
      });
    }
    expect(await types(session)).toEqual(["session.created"]);
  });
});
