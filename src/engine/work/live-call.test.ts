// One call: what it waits for, in which order, and what is recorded however it ends.
import { describe, expect, test } from "vitest";
import { gate, logOf, openTestBelay, untilAborted } from "../../../test/fixtures/belay.ts";
import { slots } from "../../agent/loop/slots.ts";
import { ControlError } from "../../core/errors.ts";
import { CALL_BYTES_MAX, CHANGES_MAX, NOTE_CHARS_MAX, RESULT_CHARS_KEPT } from "../../core/limits.ts";
import type { Recorded } from "../../core/model/event.ts";
import type { Question, Subject } from "../../core/model/question.ts";
import type { Agent, CallOptions, CallResult, Execute, Slots } from "../../ports/agent.ts";
import type { HookedCall, Verdict } from "../../ports/hooks.ts";
import type { CallProcesses, SpawnRequest } from "../../ports/spawner.ts";
import type { BelayOptions } from "../../sdk/belay-options.ts";
import { MemoryStore } from "../../store/memory/memory-store.ts";
import { type ManualClock, manualClock, settled } from "../../testing/manual-clock.ts";
import { type ChildScript, scriptedSpawner } from "../../testing/scripted-spawner.ts";

type Settled = Recorded & { readonly type: "call.settled" };

type House = Partial<BelayOptions> & { readonly clock?: ManualClock };

/** A run whose one turn makes one call, with this input, and waits for its end. */
async function call(execute: Execute, options: CallOptions = {}, house: House = {}) {
  const { clock = manualClock() } = house;
  const result = Promise.withResolvers<CallResult>();
  const { belay, notices } = await openTestBelay(
    {
      go: async (turn) => {
        turn.call("tool", { n: 1 }, execute as () => null, options).then(result.resolve, result.reject);
        await result.promise.catch(() => {});
        return "went on";
      },
    },
    { graceMs: 1_000, ...house, clock },
  );
  const session = await belay.createSession();
  const run = session.prompt("go");
  await settled();
  const questions = (): Promise<readonly Question[]> => session.questions();
  const live = async () => (await session.explain()).live?.calls[0];
  const recorded = async (): Promise<Settled | undefined> =>
    (await logOf(session)).find((event): event is Settled => event.type === "call.settled");
  return { belay, clock, notices, session, run, result: result.promise, questions, live, recorded };
}

const fails = (thrown: unknown) => (): never => {
  throw thrown;
};

/** A value that TypeScript would not accept. */
const wild = (given: unknown): NonNullable<CallOptions["approval"]> => given as never;

/** Waits until all consequences have happened, including chains of them. */
async function calm(): Promise<void> {
  for (let round = 0; round < 5; round += 1) await settled();
}

/** A text whose last character is cut in two by the limit, if it is a surrogate pair. */
const long = (last: string): string => `${"x".repeat(NOTE_CHARS_MAX - 1)}${last}`;

const coded = (code: unknown): Error => Object.assign(new Error("no"), { code });

describe("an error of a tool is recorded with its message, and with its code if that is one word", () => {
  const cases: readonly (readonly [string, () => unknown, string, string])[] = [
    ["an error", () => new Error("broken"), "error", "broken"],
    ["one with a word", () => coded("not_there"), "not_there", "no"],
    ["one with a letter", () => coded("x"), "x", "no"],
    ["one with a word that is just short enough", () => coded("a".repeat(64)), "a".repeat(64), "no"],
    ["one with a word that is too long", () => coded("a".repeat(65)), "error", "no"],
    ["one of the operating system", () => coded("ENOENT"), "error", "no"],
    ["one with a word and more", () => coded("not there"), "error", "no"],
    ["one with more and a word", () => coded("-there"), "error", "no"],
    ["one with a number", () => coded(7), "error", "no"],
    ["one of Belay's own", () => new ControlError("busy", "not now"), "busy", "not now"],
    ["an object that has a code", () => ({ code: "word", toString: () => "an object" }), "error", "an object"],
    ["half a character", () => new Error("\ud800"), "error", "\ufffd"],
    ["more than anybody reads", () => new Error(long("\u{1f600}")), "error", long("\ufffd")],
  ];
  test.each(cases)("%s", async (_, thrown, code, message) => {
    const { result, recorded, run } = await call(fails(thrown()));
    const { callId } = await result;
    expect(await result).toEqual({ kind: "failed", callId, message });
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect((await recorded())?.outcome).toEqual({ kind: "failed", code, message });
  });
});

describe("the result of a tool", () => {
  test("is recorded; undefined is no result", async () => {
    const value = await call(() => ({ lines: 3 }));
    expect(await value.result).toMatchObject({ kind: "completed", value: { lines: 3 } });
    expect(await value.recorded()).toMatchObject({ outcome: { kind: "completed" }, result: { lines: 3 } });
    const nothing = await call(() => undefined);
    expect(await nothing.result).toMatchObject({ kind: "completed", value: undefined });
    expect(await nothing.recorded()).not.toHaveProperty("result");
  });

  test("G15: is cut if it is too large, and the call has completed", async () => {
    const { result, recorded } = await call(() => `first${"x".repeat(CALL_BYTES_MAX)}last`);
    const left = CALL_BYTES_MAX + 9 - RESULT_CHARS_KEPT;
    const value = expect.stringMatching(
      new RegExp(`^\\[The call has finished\\. .*${left} characters.*\\]\nfirstx+\n\\[… ${left} .*\\]\nx+last$`),
    );
    expect(await result).toMatchObject({ kind: "completed", value });
    expect(await recorded()).toMatchObject({ outcome: { kind: "completed" }, result: value });
  });

  test("G15: is kept in its nearest form if it is not plain JSON, and the call has completed", async () => {
    const { result } = await call(() => new Map([["paid", 7n]]) as never);
    expect(await result).toMatchObject({ kind: "completed", value: { paid: "7" } });
  });

  test("G15: a partial result that is not plain JSON does not make the tool fail", async () => {
    const { result } = await call(({ partial }) => partial(new Set([1, 2]) as never));
    expect(await result).toMatchObject({ kind: "completed" });
  });

  test("a partial result is kept if the tool throws, and dropped if it succeeds", async () => {
    const failed = await call(({ partial }) => {
      partial("half");
      throw new Error("broken");
    });
    await failed.result;
    expect(await failed.recorded()).toMatchObject({ result: "half" });
    const done = await call(({ partial }) => partial("half"));
    expect(await done.result).toMatchObject({ kind: "completed", value: undefined });
    expect(await done.recorded()).not.toHaveProperty("result");
  });
});

test("reported changes are kept unchanged, each cut to its limit, and up to a number", async () => {
  const { result, recorded } = await call(({ changed }) => {
    expect(() => changed("")).toThrow("changed() takes a short text: what was changed.");
    expect(() => changed(7 as never)).toThrow("changed() takes a short text: what was changed.");
    changed(`\ud800${long("\u{1f600}").slice(1)}`);
    for (let index = 1; index <= CHANGES_MAX; index += 1) changed(`file ${index}`);
  });
  expect(await result).toMatchObject({ kind: "completed" });
  const changes = (await recorded())?.changes ?? [];
  expect(changes).toHaveLength(CHANGES_MAX);
  expect(changes[0]).toBe(`\ufffd${long("\ufffd").slice(1)}`);
  expect(changes.at(-1)).toBe(`file ${CHANGES_MAX - 1}`);
  const none = await call(() => "done");
  expect(await none.recorded()).not.toHaveProperty("changes");
});

test("changes reported after the call was abandoned are not added to its record", async () => {
  let changes: ((what: string) => void) | undefined;
  const { session, run, clock } = await call(({ changed }) => {
    changes = changed;
    changed("first");
    return new Promise(() => {});
  });
  const told: Settled[] = [];
  const following = (async () => {
    for await (const event of session.events()) {
      if (event.type === "call.settled") told.push(event);
      if (event.type === "run.settled") return;
    }
  })();
  await calm();
  void run.cancel();
  await calm();
  await clock.advance(5_000);
  await following;
  changes?.("second");
  expect(told.map((event) => event.changes)).toEqual([["first"]]);
});

test("a tool receives its ids, input, directory and clock", async () => {
  const clock = manualClock();
  let seen: unknown;
  const { result, session, run } = await call(
    ({ callId, name, input, sessionId, runId, cwd, mode, clock: time }) => {
      seen = { callId, name, input, sessionId, runId, cwd, mode, sameClock: time === clock };
    },
    {},
    { clock },
  );
  const { callId } = await result;
  const place = { cwd: undefined, mode: undefined, sameClock: true };
  expect(seen).toEqual({ callId, name: "tool", input: { n: 1 }, sessionId: session.id, runId: run.id, ...place });
});

describe("before a call begins, the host", () => {
  test("receives its ids, its input, and its signal", async () => {
    let heard: HookedCall | undefined;
    const hooks = {
      beforeCall: (one: HookedCall) => {
        heard = one;
        return untilAborted(one.signal);
      },
    };
    const { result, session, run, live, belay } = await call(() => "never", {}, { hooks });
    expect(await live()).toMatchObject({ waits: "hook" });
    const { signal, ...rest } = heard ?? {};
    const callId = heard?.callId ?? "";
    expect(rest).toEqual({ callId, name: "tool", input: { n: 1 }, runId: run.id, sessionId: session.id });
    await belay.cancel(callId, { reason: "no" });
    expect(signal?.aborted).toBe(true);
    const stopped = { kind: "cancelled", callId, reason: { kind: "user", note: "no" }, begun: false };
    expect(await result).toEqual({ ...stopped, partial: undefined, abandoned: false });
  });

  const verdict = (given: Verdict | undefined, options: CallOptions = {}) =>
    call(({ input }) => input, options, { hooks: { beforeCall: () => given } });

  test("may deny it, and the model gets the reason", async () => {
    const { result, recorded } = await verdict({ kind: "deny", note: "Not on Sundays." });
    const message = "Not carried out: a rule of the host forbids it. Not on Sundays.";
    expect(await result).toMatchObject({ kind: "failed", message });
    expect((await recorded())?.outcome).toEqual({ kind: "failed", code: "denied", message });
  });

  test("may have no opinion, and then an approval is requested if the call wants one", async () => {
    for (const nothing of [undefined, { kind: "allow" } as const]) {
      expect(await (await verdict(nothing)).result).toMatchObject({ kind: "completed", value: { n: 1 } });
      expect(await (await verdict(nothing, { approval: true })).questions()).toHaveLength(1);
    }
  });

  test("may approve it, and no approval is requested", async () => {
    const { result, questions } = await verdict({ kind: "allow", approved: true }, { approval: true });
    expect(await questions()).toEqual([]);
    expect(await result).toMatchObject({ kind: "completed", value: { n: 1 } });
  });

  test("may replace its input, but not with one that cannot be recorded", async () => {
    const { result } = await verdict({ kind: "allow", input: { n: 2 } });
    expect(await result).toMatchObject({ kind: "completed", value: { n: 2 } });
    const bad = await verdict({ kind: "allow", input: Number.NaN });
    expect(await bad.result).toMatchObject({
      kind: "failed",
      message: expect.stringContaining("gave to tool contains NaN, which JSON does not have."),
    });
  });

  test("does not approve if it returns an invalid verdict", async () => {
    for (const none of [false, "deny", { deny: true }, { kind: "Deny", note: "no" }, { kind: "reject" }]) {
      const { result, recorded } = await verdict(none as never);
      expect(await result).toMatchObject({
        kind: "failed",
        message: expect.stringMatching(/^It was not carried out: /),
      });
      expect((await recorded())?.outcome).toMatchObject({ kind: "failed", code: "unavailable" });
    }
    const message = "Not carried out: a rule of the host forbids it. It gives no reason.";
    expect(await (await verdict({ kind: "deny" } as never)).result).toMatchObject({ kind: "failed", message });
  });
});

describe("the approval option of a call", () => {
  const approvals: readonly (readonly [string, NonNullable<CallOptions["approval"]>, Partial<Subject> | undefined])[] =
    [
      ["no", false, undefined],
      ["yes", true, { scope: "tool" }],
      ["nothing in particular", {}, { scope: "tool" }],
      ["for a scope, with a note", { scope: "disk", note: "writes" }, { scope: "disk", note: "writes" }],
      ["with a long note", { note: long("\u{1f600}") }, { scope: "tool", note: long("\ufffd") }],
      ["no, by its input", () => false, undefined],
      ["yes, by its input", (input) => (input as { n: number }).n === 1, { scope: "tool" }],
      ["later, by its input", async () => ({ scope: "disk" }), { scope: "disk" }],
      [
        "not at all: it throws",
        fails(new Error("no idea")),
        { scope: "tool", note: "Whether this needs an approval could not be told: no idea" },
      ],
      [
        "not at all: it throws at length",
        fails(new Error("x".repeat(NOTE_CHARS_MAX))),
        {
          scope: "tool",
          note: `Whether this needs an approval could not be told: ${"x".repeat(NOTE_CHARS_MAX)}`.slice(
            0,
            NOTE_CHARS_MAX,
          ),
        },
      ],
      [
        "not at all: it rejects",
        async () => fails(new Error("no idea"))(),
        { scope: "tool", note: "Whether this needs an approval could not be told: no idea" },
      ],
      [
        "not at all: it says something else",
        wild(() => ({ note: 7 })),
        {
          scope: "tool",
          note: "Whether this needs an approval could not be told: An approval's `note` is a text.",
        },
      ],
    ];
  test.each([wild({ note: 7 }), wild("yes")])("%j is invalid, and nothing begins", async (approval) => {
    const { result, recorded } = await call(() => "never", { approval });
    await expect(result).rejects.toMatchObject({ code: "invalid" });
    expect(await recorded()).toBeUndefined();
  });

  test.each(approvals)("%s", async (_, approval, about) => {
    const { questions, live, result, belay } = await call(() => "carried out", { approval });
    const [question] = await questions();
    if (about === undefined) {
      expect(question).toBeUndefined();
    } else {
      const digest = expect.stringMatching(/./);
      expect(question?.about).toStrictEqual({ kind: "approval", name: "tool", input: { n: 1 }, digest, ...about });
      expect(await live()).toMatchObject({ waits: "approval" });
      await belay.questions.allow(question?.id ?? "");
    }
    expect(await result).toMatchObject({ kind: "completed", value: "carried out" });
  });

  test("is awaited, and a stop meanwhile is a stop and requests no approval", async () => {
    const { live, result, belay, questions } = await call(() => "never", { approval: () => new Promise(() => {}) });
    // It has no hook to wait for.
    expect((await live())?.waits).toBeUndefined();
    await belay.cancel((await live())?.callId ?? "");
    expect(await result).toMatchObject({ kind: "cancelled", reason: { kind: "user" } });
    expect(await questions()).toEqual([]);
  });
});

describe("the model gets the reason if a call is not approved", () => {
  const answers: readonly (readonly [string, { by?: string; note?: string }, string])[] = [
    ["who and why", { by: "bob", note: "not there" }, "Not carried out: denied by bob: not there"],
    ["who", { by: "bob" }, "Not carried out: denied by bob."],
    ["why", { note: "not there" }, "Not carried out: denied by the user: not there"],
    ["that it was denied", {}, "Not carried out: denied by the user."],
  ];
  test.each(answers)("%s", async (_, reply, message) => {
    const { questions, result, belay, recorded } = await call(() => "never", { approval: true });
    await belay.questions.deny((await questions())[0]?.id ?? "", reply);
    expect(await result).toMatchObject({ kind: "failed", message });
    expect((await recorded())?.outcome).toEqual({ kind: "failed", code: "denied", message });
  });

  test("that was not answered in time", async () => {
    const { clock, result } = await call(() => "never", { approval: { deadlineMs: 5_000 } });
    await clock.advance(5_000);
    expect(await result).toMatchObject({ message: "Not carried out: not approved within 5000 ms." });
  });
});

describe("a call that needs a slot", () => {
  /** One slot, and its holder. */
  const taken = () => {
    const places = slots(1);
    const held = Promise.withResolvers<() => void>();
    places.take(held.resolve);
    return { places, free: async () => (await held.promise)() };
  };
  const isFree = (places: Slots): boolean => {
    let free = false;
    const dispose = places.take((giveBack) => {
      free = true;
      giveBack();
    });
    dispose();
    return free;
  };

  test("waits for it, holds it while it runs, and releases it", async () => {
    const { places, free } = taken();
    const goOn = gate();
    const { live, result } = await call(() => goOn.passed, { slots: places });
    expect(await live()).toMatchObject({ waits: "slot" });
    await free();
    await settled();
    expect((await live())?.waits).toBeUndefined();
    expect(isFree(places)).toBe(false);
    goOn.open();
    expect(await result).toMatchObject({ kind: "completed" });
    expect(isFree(places)).toBe(true);
  });

  test("releases it if it fails", async () => {
    const places = slots(1);
    expect(await (await call(fails(new Error("no")), { slots: places })).result).toMatchObject({ kind: "failed" });
    expect(isFree(places)).toBe(true);
  });

  test("releases it if it is abandoned, although it may still run", async () => {
    const places = slots(1);
    const { live, result, belay, clock } = await call(() => new Promise(() => {}), { slots: places });
    expect(isFree(places)).toBe(false);
    const receipt = belay.cancel((await live())?.callId ?? "", { waitMs: 0 });
    await clock.advance(1_000);
    await receipt;
    expect(await result).toMatchObject({ kind: "cancelled", abandoned: true });
    expect(isFree(places)).toBe(true);
  });

  test("does not begin if its slot and its stop come together, and releases the slot", async () => {
    const { places, free } = taken();
    const begun: string[] = [];
    const { live, result, belay } = await call(() => void begun.push("begun"), { slots: places });
    const { callId = "" } = (await live()) ?? {};
    const receipt = belay.cancel(callId);
    await free();
    await receipt;
    expect(await result).toMatchObject({ kind: "cancelled" });
    expect(begun).toEqual([]);
    expect(isFree(places)).toBe(true);
  });
});

test("G25: a call that the agent cannot resume is passed to afterCall without an input", async () => {
  const store = new MemoryStore({ clock: manualClock() });
  store.close = async () => {};
  const ask = { name: "forgotten", input: { n: 1 }, idempotent: true, execute: () => new Promise<never>(() => {}) };
  const agent: Agent = (turn) => (turn.spent.turns === 0 ? { calls: [ask] } : "went on");
  const first = await openTestBelay({}, { agent, store });
  const session = await first.belay.createSession();
  const run = session.prompt("go");
  run.outcome.catch(() => {});
  await expect.poll(async () => (await session.explain()).live?.calls.length).toBe(1);
  await first.belay.close();
  const heard: unknown[] = [];
  const second = await openTestBelay({}, { agent, store, hooks: { afterCall: (end) => void heard.push(end) } });
  expect(await (await second.belay.run(run.id)).text()).toBe("went on");
  const message = "It cannot be executed any more: the agent does not know this call.";
  expect(heard).toMatchObject([
    { name: "forgotten", input: null, outcome: { kind: "failed", code: "unavailable", message } },
  ]);
});

describe("the time limit of a call", () => {
  test("begins with the call, not while it waits for people", async () => {
    const { clock, questions, belay, result, recorded } = await call(({ signal }) => untilAborted(signal), {
      approval: true,
      timeoutMs: 500,
    });
    await clock.advance(10_000);
    await belay.questions.allow((await questions())[0]?.id ?? "");
    await clock.advance(499);
    expect(await recorded()).toBeUndefined();
    await clock.advance(1);
    expect(await result).toMatchObject({ kind: "cancelled", reason: { kind: "timeout", limitMs: 500 } });
  });

  test("is cancelled when it ends", async () => {
    const { clock, result, run } = await call(() => "done", { timeoutMs: 77_777 });
    expect(await result).toMatchObject({ kind: "completed" });
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(clock.pending.map(({ inMs }) => inMs)).not.toContain(77_777);
  });
});

describe("the processes of a call", () => {
  const processes = (plan: readonly ChildScript[] = []) => {
    const clock = manualClock();
    const spawner = scriptedSpawner({ clock, graceMs: 1_000 });
    for (const script of plan) spawner.plan(script);
    return { spawner, house: { clock, processes: { spawner } } };
  };
  const cancel = async ({ belay, live, clock }: Awaited<ReturnType<typeof call>>): Promise<void> => {
    const receipt = belay.cancel((await live())?.callId ?? "");
    await clock.advance(5_000);
    await receipt;
  };

  test("end with it, and only then has it ended", async () => {
    const { spawner, house } = processes([{ whenStopped: "ignores" }]);
    const one = await call(
      async (self) => {
        void self.processes.run("work").catch(() => {});
        await settled();
        return "left it going";
      },
      {},
      house,
    );
    await calm();
    await one.clock.advance(999);
    expect(spawner.children[0]?.alive).toBe(true);
    expect(await one.recorded()).toBeUndefined();
    await one.clock.advance(1);
    expect(spawner.children[0]?.alive).toBe(false);
    expect(await one.result).toMatchObject({ kind: "completed", value: "left it going" });
  });

  test("leave their output with it if it is stopped, unless it has stored a partial result", async () => {
    for (const own of [undefined, "my own"]) {
      const { spawner, house } = processes();
      const one = await call(
        async (self) => {
          if (own !== undefined) self.partial(own);
          await self.processes.run("work");
        },
        {},
        house,
      );
      const child = await spawner.next();
      child.say("so far");
      await cancel(one);
      const left = { processId: child.request.id, exit: { signal: "SIGTERM" }, output: { tail: "so far" } };
      expect(await one.result).toMatchObject({ kind: "cancelled", partial: own ?? left });
      expect(await one.recorded()).not.toHaveProperty("result.outcome");
    }
  });

  test("G12: are killed with it even if they start at the end of the grace period", async () => {
    const { spawner, house } = processes([{ whenStopped: "ignores" }]);
    const slow = gate();
    // A child that cannot be stopped before it exists.
    const held = new Proxy(spawner, {
      get: (target, name) =>
        name === "spawn"
          ? async ({ signal: _, ...request }: SpawnRequest) => slow.passed.then(() => target.spawn(request))
          : Reflect.get(target, name),
    });
    const one = await call(
      (self) => self.processes.run("work").then(() => null),
      {},
      { ...house, processes: { spawner: held } },
    );
    const receipt = one.belay.cancel((await one.live())?.callId ?? "");
    await calm();
    await one.clock.advance(999);
    slow.open();
    await calm();
    expect(spawner.children[0]?.alive).toBe(true);
    await one.clock.advance(1);
    expect(spawner.children[0]?.alive).toBe(false);
    expect(await one.result).toMatchObject({ kind: "cancelled", abandoned: false });
    await receipt;
  });

  test("cannot be started once it has returned", async () => {
    const { spawner, house } = processes();
    let kept: CallProcesses | undefined;
    const one = await call(
      (self) => {
        kept = self.processes;
      },
      {},
      house,
    );
    expect(await one.result).toMatchObject({ kind: "completed" });
    await expect(kept?.start("work")).rejects.toThrow("This call begins nothing new.");
    expect(spawner.children).toEqual([]);
  });

  test("G22: a result it has waited for is recorded in `heard`, once, and nothing if it waited for none", async () => {
    const { spawner, house } = processes();
    const one = await call(
      async (self) => {
        const handle = await self.processes.start("work");
        await handle.wait();
        await handle.wait();
      },
      {},
      house,
    );
    const child = await spawner.next();
    child.exit();
    expect(await one.result).toMatchObject({ kind: "completed" });
    expect((await one.recorded())?.heard).toEqual([child.request.id]);
    const none = await call(() => "done");
    expect(await none.recorded()).not.toHaveProperty("heard");
  });

  test("G22: a result after it has returned is not recorded in `heard`, although a wait is still pending", async () => {
    const { spawner, house } = processes([{}, { whenStopped: "ignores" }]);
    const one = await call(
      async (self) => {
        const handle = await self.processes.start("background");
        void handle.wait();
        void self.processes.run("foreground").catch(() => {});
        await settled();
      },
      {},
      house,
    );
    await calm();
    spawner.children[0]?.exit();
    await calm();
    await one.clock.advance(1_000);
    expect(await one.result).toMatchObject({ kind: "completed" });
    expect(await one.recorded()).not.toHaveProperty("heard");
  });
});

test("a call that is not interruptible is not signalled, but can check whether it must stop", async () => {
  const seen: unknown[] = [];
  const between = gate();
  const { run, recorded } = await call(
    async (live) => {
      seen.push(live.stopping);
      await between.passed;
      seen.push(live.stopping, live.signal.aborted);
      return "the first step";
    },
    { interruptible: false },
  );
  await run.cancel();
  between.open();
  expect(await run.outcome).toMatchObject({ kind: "cancelled" });
  expect(seen).toEqual([false, true, false]);
  expect(await recorded()).toMatchObject({ outcome: { kind: "completed" }, result: "the first step" });
});
