// Approvals and questions, and the answers to them.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { gate, untilAborted } from "../../test/fixtures/belay.ts";
import type { Json } from "../core/model/prompt.ts";
import type { Question } from "../core/model/question.ts";
import type { Agent, CallRequest } from "../ports/agent.ts";
import type { Hooks } from "../ports/hooks.ts";
import { manualClock } from "../testing/manual-clock.ts";
import { type Belay, openBelay } from "./belay.ts";
import type { BelayOptions } from "./belay-options.ts";
import type { Session } from "./session.ts";

/** A turn that makes these calls, and a turn that reports how they ended. */
function callsThenTells(calls: readonly CallRequest[]): Agent {
  const agent: Agent = async (turn) => {
    if (turn.spent.turns === 0) return { calls };
    const results = (await turn.transcript()).flatMap((message) => (message.role === "tool" ? message.results : []));
    return JSON.stringify(results.map(({ outcome, result }) => ({ ...outcome, result })));
  };
  return Object.assign(agent, { resume: ({ name }: { name: string }) => calls.find((call) => call.name === name) });
}

async function open(agent: Agent, options: Partial<BelayOptions> = {}): Promise<{ belay: Belay; session: Session }> {
  const belay = await openBelay({ agent, store: ":memory:", graceMs: 50, ...options });
  return { belay, session: await belay.createSession() };
}

async function asked(session: Session, many = 1): Promise<readonly Question[]> {
  await expect.poll(async () => (await session.questions()).length).toBe(many);
  return session.questions();
}

const write = (done: Json[]): CallRequest => ({
  name: "write",
  input: { path: "a", text: "b" },
  approval: { note: "writes a file" },
  execute: ({ input }) => {
    done.push(input);
    return "written";
  },
});

describe("an approval", () => {
  test("shows the exact input, and the approved input is what runs", async () => {
    const done: Json[] = [];
    const { belay, session } = await open(callsThenTells([write(done)]));
    const run = session.prompt("go");
    const [question] = await asked(session);
    expect(question?.about).toMatchObject({
      kind: "approval",
      name: "write",
      input: { path: "a", text: "b" },
      note: "writes a file",
    });
    expect(done).toEqual([]);
    const digest = question?.about.kind === "approval" ? question.about.digest : "";
    await expect(belay.questions.allow(question?.id ?? "", { digest: "other" })).rejects.toMatchObject({
      code: "conflict",
    });
    expect(await belay.questions.allow(question?.id ?? "", { digest, by: "bob" })).toEqual({
      kind: "recorded",
      questionId: question?.id,
    });
    expect(await run.text()).toContain('"result":"written"');
    expect(done).toEqual([{ path: "a", text: "b" }]);
  });

  test("shows, approves and runs the input that a hook put in place of the original", async () => {
    const done: Json[] = [];
    const hooks: Hooks = { beforeCall: () => ({ kind: "allow", input: { path: "safe" } }) };
    const { belay, session } = await open(callsThenTells([write(done)]), { hooks });
    session.prompt("go");
    const [question] = await asked(session);
    expect(question?.about).toMatchObject({ input: { path: "safe" } });
    await belay.questions.allow(question?.id ?? "");
    await expect.poll(() => done).toEqual([{ path: "safe" }]);
  });

  test("that is denied: the call does not run, and the model receives by whom and why, and continues", async () => {
    const done: Json[] = [];
    const { belay, session } = await open(callsThenTells([write(done)]));
    const run = session.prompt("go");
    const [question] = await asked(session);
    await belay.questions.deny(question?.id ?? "", { by: "bob", note: "not there" });
    expect(await run.text()).toContain("denied by bob: not there");
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(done).toEqual([]);
  });

  test("is answered once: of two answers in one tick the first counts, and the second is refused", async () => {
    const done: Json[] = [];
    const { belay, session } = await open(callsThenTells([write(done)]));
    const run = session.prompt("go");
    const [question] = await asked(session);
    const first = belay.questions.deny(question?.id ?? "", { by: "bob" });
    const second = belay.questions.allow(question?.id ?? "", { by: "eve" });
    expect(await first).toMatchObject({ kind: "recorded" });
    expect(await second).toEqual({ kind: "settled", ending: { kind: "denied", by: "bob" } });
    await run.outcome;
    expect(await belay.questions.allow(question?.id ?? "")).toEqual({
      kind: "settled",
      ending: { kind: "denied", by: "bob" },
    });
    expect(done).toEqual([]);
  });

  test("for the whole session is remembered by its scope, and not requested again", async () => {
    const done: Json[] = [];
    const { belay, session } = await open(callsThenTells([write(done)]));
    const first = session.prompt("go");
    const [question] = await asked(session);
    await belay.questions.allow(question?.id ?? "", { remember: "session" });
    await first.outcome;
    expect(await session.prompt("again").outcome).toEqual({ kind: "completed" });
    expect(done.length).toBe(2);
    const other = await belay.createSession();
    other.prompt("go");
    expect((await asked(other)).length).toBe(1);
    await other.cancel({ waitMs: 5000 });
  });

  test("without an answer is denied at its deadline, with that reason", {
    meta: { id: "G33/unanswered-approval-expires" },
  }, async () => {
    const done: Json[] = [];
    const clock = manualClock();
    const { session } = await open(callsThenTells([{ ...write(done), approval: { deadlineMs: 60_000 } }]), { clock });
    const run = session.prompt("go");
    await asked(session);
    await clock.advance(59_999);
    expect((await session.questions()).length).toBe(1);
    await clock.advance(1);
    expect(await run.text()).toContain("not approved within 60000 ms");
    expect(done).toEqual([]);
  });

  test("that is cancelled stops its call, and the model gets a reminder", async () => {
    const done: Json[] = [];
    const { belay, session } = await open(callsThenTells([write(done)]));
    const run = session.prompt("go");
    const [question] = await asked(session);
    expect(await belay.cancel(question?.id ?? "", { reason: "no" })).toEqual({ kind: "withdrawn" });
    expect(await run.text()).toContain('"kind":"cancelled"');
    const notes = (await session.transcript()).filter(({ role }) => role === "note");
    expect(notes.length).toBe(1);
    expect(await belay.cancel(question?.id ?? "")).toMatchObject({ kind: "settled", outcome: { kind: "cancelled" } });
    expect(done).toEqual([]);
  });

  test("is closed by a prompt that interrupts, and its call never runs", async () => {
    const done: Json[] = [];
    const { belay, session } = await open(callsThenTells([write(done)]));
    const run = session.prompt("go");
    const [question] = await asked(session);
    const urgent = session.prompt("urgent", { delivery: "interrupt" });
    expect(await run.outcome).toMatchObject({ kind: "cancelled", reason: { kind: "superseded", by: urgent.id } });
    expect(await belay.questions.allow(question?.id ?? "")).toMatchObject({
      kind: "settled",
      ending: { kind: "withdrawn" },
    });
    await session.cancel({ waitMs: 5000 });
    expect(done).toEqual([]);
  });

  for (const mode of ["park", "crash"] as const) {
    test(`G25: survives a ${mode}: it can still be answered, and the call runs once`, async () => {
      const folder = await mkdtemp(join(tmpdir(), "belay-"));
      onTestFinished(() => rm(folder, { recursive: true, force: true }));
      const done: Json[] = [];
      const store = join(folder, "belay.db");
      const before = await open(callsThenTells([write(done)]), { store });
      const run = before.session.prompt("go");
      const [question] = await asked(before.session);
      // A shutdown without any time leaves the run as a crash would.
      await before.belay.close(mode === "park" ? {} : { limitMs: 0 });
      const belay = await openBelay({ agent: callsThenTells([write(done)]), store });
      // Before the removal of its file: what is registered last is called first.
      onTestFinished(async () => {
        await belay.close();
      });
      const [still] = await asked(belay.session(before.session.id));
      expect(still?.id).toBe(question?.id);
      await belay.questions.allow(question?.id ?? "");
      const resumed = await belay.run(run.id);
      expect(await resumed.outcome).toEqual({ kind: "completed" });
      expect(await resumed.text()).toContain('"result":"written"');
      expect(done).toEqual([{ path: "a", text: "b" }]);
    });
  }
});

describe("a question", () => {
  test("several at once are answered separately, in any order", async () => {
    const asks = (text: string): CallRequest => ({
      name: text,
      input: null,
      execute: async ({ ask }) => {
        const answer = await ask({ text, options: ["yes", "no"], only: true });
        return answer.kind === "answered" ? { value: answer.value } : { value: answer.kind };
      },
    });
    const { belay, session } = await open(callsThenTells([asks("one"), asks("two")]));
    const run = session.prompt("go");
    const [one, two] = await asked(session, 2);
    await expect(belay.questions.answer(two?.id ?? "", "perhaps")).rejects.toMatchObject({ code: "invalid" });
    await expect(belay.questions.allow(two?.id ?? "")).rejects.toMatchObject({ code: "invalid" });
    expect(await belay.questions.answer(two?.id ?? "", "no")).toMatchObject({ kind: "recorded" });
    expect(await belay.questions.answer(one?.id ?? "", "yes")).toMatchObject({ kind: "recorded" });
    expect(JSON.parse(await run.text())).toMatchObject([{ result: { value: "yes" } }, { result: { value: "no" } }]);
  });

  test("of a turn ends in the tick of a cancel of its run", {
    meta: { id: "G13/cancel-ends-open-question" },
  }, async () => {
    const heard: unknown[] = [];
    const { session } = await open(async ({ ask }) => {
      await ask({ text: "really?" }).catch((error: unknown) => heard.push(error));
      return "never mind";
    });
    const run = session.prompt("go");
    await asked(session);
    await run.cancel();
    expect(await run.outcome).toMatchObject({ kind: "cancelled" });
    expect(heard).toMatchObject([{ name: "AbortError" }]);
    expect(await session.questions()).toEqual([]);
  });

  test("of a call that ends without waiting for the answer is closed with it", async () => {
    const { belay, session } = await open(
      callsThenTells([
        {
          name: "hasty",
          input: null,
          execute: ({ ask }) => {
            ask({ text: "?" }).catch(() => {});
            return gate().passed;
          },
          timeoutMs: 20,
        },
      ]),
    );
    const run = session.prompt("go");
    const [question] = await asked(session);
    await run.outcome;
    expect(await belay.questions.answer(question?.id ?? "", "late")).toMatchObject({
      kind: "settled",
      ending: { kind: "withdrawn" },
    });
  });

  test("that does not exist is unknown, and bad answers leave no trace", async () => {
    const { belay } = await open(() => "");
    expect(await belay.questions.answer("ask_none.1", 1)).toEqual({ kind: "unknown" });
    await expect(belay.questions.allow("run_1")).rejects.toThrow("begins with");
    await expect(belay.questions.deny("ask_none.1", { wrong: 1 } as object)).rejects.toThrow("wrong");
  });
});

describe("hooks", () => {
  test("a hook that denies, throws or hangs prevents the call, with that reason", async () => {
    const done: Json[] = [];
    const clock = manualClock();
    const notices: unknown[] = [];
    const verdicts: Readonly<Record<string, Hooks["beforeCall"]>> = {
      denies: () => ({ kind: "deny", note: "forbidden here" }),
      throws: () => {
        throw new Error("broken hook");
      },
      hangs: () => new Promise<void>(() => {}),
    };
    const names = Object.keys(verdicts);
    const calls = names.map((name): CallRequest => ({ ...write(done), approval: false, name }));
    const { session } = await open(callsThenTells(calls), {
      clock,
      hooks: { beforeCall: (call) => verdicts[call.name]?.(call) },
      onNotice: (notice) => notices.push(notice),
    });
    const run = session.prompt("go");
    await expect.poll(async () => (await session.explain()).live?.calls.map(({ name }) => name)).toEqual(["hangs"]);
    await clock.advance(5_000);
    const told = await run.text();
    expect(told).toContain("forbidden here");
    expect(told).toContain("broken hook");
    expect(told).toContain("did not end within 5000 ms");
    expect(notices).toMatchObject([
      { type: "hook", hook: "beforeCall" },
      { type: "hook", message: expect.stringMatching(/5000/) },
    ]);
    expect(done).toEqual([]);
  });

  test("each event is reported once, and a hook that hangs delays nothing", async () => {
    const heard: unknown[] = [];
    const hear =
      (what: string) =>
      (fact: object): Promise<void> => {
        heard.push({ what, ...fact });
        return new Promise(() => {});
      };
    const running = gate();
    const { belay, session } = await open(
      callsThenTells([
        {
          name: "slow",
          input: null,
          execute: ({ signal }) => {
            running.open();
            return untilAborted(signal);
          },
        },
      ]),
      {
        hooks: {
          afterCall: hear("call"),
          onCancel: hear("cancel"),
          onOutcome: hear("outcome"),
          onSessionEnd: hear("session"),
        },
      },
    );
    const run = session.prompt("go");
    await running.passed;
    await run.cancel({ reason: "enough" });
    await run.outcome;
    await session.close();
    await belay.close();
    const sessionId = session.id;
    expect(heard).toMatchObject([
      { what: "cancel", sessionId, runId: run.id, reason: { kind: "user", note: "enough" } },
      { what: "call", name: "slow", outcome: { kind: "cancelled" } },
      { what: "outcome", runId: run.id, outcome: { kind: "cancelled" } },
      { what: "session", sessionId, reason: { kind: "closed" } },
    ]);
  });
});

describe("a run's limits", () => {
  test("the time limit of a run cancels it, with the limit as the reason", async () => {
    const clock = manualClock();
    const { session } = await open(({ signal }) => untilAborted(signal), { clock, runLimitMs: 1_000 });
    const run = session.prompt("go");
    await run.accepted;
    await expect.poll(async () => (await session.explain()).live?.turn).toBeDefined();
    await clock.advance(1_000);
    expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "timeout", limitMs: 1_000 } });
    await clock.advance(5_000);
  });

  test("an agent that stops its own run ends it as cancelled by policy, with its text", async () => {
    const { session } = await open(async ({ emit, stop }) => {
      emit("so far");
      await stop("The budget is used up.");
      return undefined;
    });
    const run = session.prompt("go");
    expect(await run.outcome).toEqual({
      kind: "cancelled",
      reason: { kind: "policy", note: "The budget is used up." },
    });
    expect(await run.text()).toBe("so far");
  });
});

describe("the inbox", () => {
  test("a posted item waits for the next turn, is delivered once, and is not a prompt", async () => {
    const heard: string[][] = [];
    const { session } = await open(async (turn) => {
      const messages = await turn.transcript();
      heard.push(messages.map((message) => (message.role === "note" ? message.item.text : message.role)));
      return "ok";
    });
    await session.post({ kind: "result", text: "the build is green" }, { key: "once" });
    await session.post({ kind: "result", text: "the build is green" }, { key: "once" });
    await session.prompt("go").outcome;
    await session.prompt("on").outcome;
    expect(heard).toEqual([
      ["user", "the build is green"],
      ["user", "the build is green", "assistant", "user"],
    ]);
  });

  test("steers and posts that arrive while a turn compacts are delivered to that turn", async () => {
    const compacting = gate();
    const goOn = gate();
    const heard: string[] = [];
    const { session } = await open(async (turn) => {
      compacting.open();
      await goOn.passed;
      await turn.compact("what went before");
      await turn.takeSteers();
      for (const message of await turn.transcript()) {
        heard.push(message.role === "note" ? message.item.text : "text" in message ? message.text : message.role);
      }
      return "done";
    });
    const run = session.prompt("go");
    await compacting.passed;
    await session.post({ kind: "reminder", text: "posted" });
    await session.prompt("steered", { delivery: "steer" }).accepted;
    goOn.open();
    await run.outcome;
    expect(heard).toEqual(["go", "what went before", "posted", "steered"]);
  });
});
