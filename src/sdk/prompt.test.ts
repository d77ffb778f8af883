// Prompting through the library: acceptance, keys, deliveries, the queue, and bad input.
import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { gate, openTestBelay, waits } from "../../test/fixtures/belay.ts";
import type { Session } from "./session.ts";

const heads = async (session: Session): Promise<number> => (await session.explain()).asOf;

describe("idempotency keys", () => {
  test("G2: two concurrent requests under one key are one run", {
    meta: { id: "G2/racing-requests-one-run" },
  }, async () => {
    const { belay, begun } = await openTestBelay();
    const session = await belay.createSession();
    const [a, b] = [session.prompt("once", { key: "k" }), session.prompt("once", { key: "k" })];
    const [first, second] = await Promise.all([a.accepted, b.accepted]);
    expect(second).toMatchObject({ runId: first.runId, seq: first.seq, repeated: true });
    expect(a.id).toBe(b.id);
    expect(await a.outcome).toEqual(await b.outcome);
    expect(begun).toEqual(["once"]);
  });

  test("G35: programs that count keys from 1 do not share keys", async () => {
    const { belay } = await openTestBelay();
    const [none, ann, bob, tenants] = [
      {},
      { keyOf: "ann" },
      { keyOf: "bob" },
      { keyOf: "ann", tenant: "bob" },
    ] as const;
    const owners = [none, ann, bob, tenants, { tenant: "ann" }, { tenant: "bob" }];
    const made = await Promise.all(owners.map((owner) => belay.createSession({ key: "1", ...owner })));
    expect(new Set(made.map(({ id }) => id)).size).toBe(owners.length);
    const begun = owners.map((owner) => belay.prompt("hello", { key: "1", ...owner }));
    expect(new Set(begun.map(({ sessionId }) => sessionId)).size).toBe(owners.length);
    expect((await belay.prompt("hello", { key: "1", ...ann }).accepted).repeated).toBe(true);
  });

  test("G2: the key of a run that ended long ago still names it", async () => {
    const { belay, begun } = await openTestBelay();
    const session = await belay.createSession();
    const first = session.prompt("once", { key: "k" });
    await first.outcome;
    for (let index = 0; index < 5; index += 1) await session.prompt(`more ${index}`).outcome;
    const again = session.prompt("once", { key: "k" });
    expect((await again.accepted).repeated).toBe(true);
    expect(again.id).toBe(first.id);
    expect(begun.filter((text) => text === "once")).toHaveLength(1);
  });

  test("G2: the same key with another prompt is a conflict, and leaves no trace", {
    meta: { id: "G2/key-conflict-leaves-nothing" },
  }, async () => {
    const { belay, began } = await openTestBelay({ once: waits });
    const session = await belay.createSession();
    const first = session.prompt("once", { key: "k" });
    await began("once");
    const head = await heads(session);
    await expect(session.prompt("other", { key: "k" }).accepted).rejects.toMatchObject({ code: "conflict" });
    expect(await heads(session)).toBe(head);
    await first.cancel({ waitMs: 1000 });
  });

  test("G2: the same prompt with its data in another order is the same request", async () => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    const first = session.prompt({ text: "go", data: { a: 1, b: [{ c: 2, d: 3 }] } }, { key: "k" });
    const { runId } = await first.accepted;
    const again = session.prompt({ data: { b: [{ d: 3, c: 2 }], a: 1 }, text: "go" }, { key: "k" });
    expect(await again.accepted).toMatchObject({ runId, repeated: true });
    const posted = await session.post({ kind: "result", text: "x", data: { a: 1, b: 2 } }, { key: "p" });
    expect(await session.post({ kind: "result", text: "x", data: { b: 2, a: 1 } }, { key: "p" })).toEqual(posted);
  });

  test("G2: the same key with another session title is a conflict", async () => {
    const { belay } = await openTestBelay();
    const [a, b] = await Promise.all([1, 2].map(() => belay.createSession({ key: "s", title: "one \ud800" })));
    expect(a?.id).toBe(b?.id);
    for (const title of [{}, { title: "two" }]) {
      await expect(belay.createSession({ key: "s", ...title })).rejects.toMatchObject({ code: "conflict" });
    }
    expect(await belay.sessions()).toHaveLength(1);
  });

  test("a session created twice under one key is one session", async () => {
    const { belay } = await openTestBelay();
    const [a, b] = await Promise.all([belay.createSession({ key: "s" }), belay.createSession({ key: "s" })]);
    expect(a.id).toBe(b.id);
    expect(await belay.sessions()).toHaveLength(1);
  });
});

describe("one run at a time", () => {
  test("G4: runs start in the order of acceptance, each after the end of the previous one", async () => {
    const { belay, begun, began } = await openTestBelay({ bad: () => Promise.reject(new Error("no")), slow: waits });
    const session = await belay.createSession();
    const runs = ["bad", "slow", "good"].map((text) => session.prompt(text));
    expect(await runs[0]?.outcome).toEqual({ kind: "failed", code: "error", message: "no" });
    await began("slow");
    await runs[1]?.cancel();
    expect(await runs[2]?.outcome).toEqual({ kind: "completed" });
    expect(begun).toEqual(["bad", "slow", "good"]);
  });

  test("G16: a waiter on one run resolves when that run ends, not when the next does", async () => {
    const { belay } = await openTestBelay({ b: waits });
    const session = await belay.createSession();
    const [a, b] = [session.prompt("a"), session.prompt("b")];
    expect(await a.outcome).toEqual({ kind: "completed" });
    expect((await session.explain()).live?.runId).toBe(b.id);
    await b.cancel({ waitMs: 1000 });
  });

  test("G4: with one slot, sessions take turns", { meta: { id: "G4/sessions-take-turns" } }, async () => {
    const { belay, begun } = await openTestBelay({}, { liveRunsMax: 1 });
    const [one, two] = [await belay.createSession(), await belay.createSession()];
    const runs = ["1a", "1b", "1c"].map((text) => one.prompt(text));
    runs.push(...["2a", "2b"].map((text) => two.prompt(text)));
    await Promise.all(runs.map((run) => run.outcome));
    expect(begun).toEqual(["1a", "2a", "1b", "2b", "1c"]);
  });
});

describe("deliveries", () => {
  test("G5: a steer joins the live run, with its own id and outcome", async () => {
    const go = gate();
    const { belay, began } = await openTestBelay({
      work: async (turn) => {
        await go.passed;
        return (await turn.takeSteers()).map((steer) => steer.text).join();
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("work");
    await began("work");
    const steers = ["left", "right"].map((text) => session.prompt(text, { delivery: "steer" }));
    expect(await steers[1]?.accepted).toMatchObject({ joined: "steer" });
    go.open();
    expect(await run.text()).toBe("left,right");
    for (const steer of steers) expect(await steer.outcome).toEqual({ kind: "completed", into: run.id });
  });

  test("G5: a steer that waits when a turn starts is in the turn's first takeSteers()", async () => {
    const go = gate();
    const seen: string[] = [];
    const { belay, began } = await openTestBelay({
      work: async (turn) => {
        if (turn.turnId.endsWith(".2")) seen.push(...(await turn.takeSteers()).map((steer) => steer.text));
        else await go.passed;
        return (turn.turnId.endsWith(".1") ? { next: "turn" } : { text: "end" }) as never;
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("work");
    await began("work");
    const steer = session.prompt("left", { delivery: "steer" });
    await steer.accepted;
    go.open();
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(await steer.outcome).toEqual({ kind: "completed", into: run.id });
    expect(seen).toEqual(["left"]);
  });

  test("G5: a steer without a live run becomes its own run", {
    meta: { id: "G5/late-steer-becomes-run" },
  }, async () => {
    const go = gate();
    const { belay, began, begun } = await openTestBelay({
      work: async () => {
        await go.passed;
        return "did not look";
      },
    });
    const session = await belay.createSession();
    const run = session.prompt("work");
    await began("work");
    const steer = session.prompt("left", { delivery: "steer" });
    await steer.accepted;
    go.open();
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(await steer.outcome).toEqual({ kind: "completed" });
    expect(begun).toEqual(["work", "left"]);
  });

  test("G5: an interrupt cancels the live run and runs before the queue", {
    meta: { id: "G5/interrupt-before-queue" },
  }, async () => {
    const { belay, began, begun } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    const live = session.prompt("live");
    await began("live");
    const queued = session.prompt("queued");
    const urgent = session.prompt("urgent", { delivery: "interrupt" });
    expect(await live.outcome).toEqual({ kind: "cancelled", reason: { kind: "superseded", by: urgent.id } });
    await queued.outcome;
    expect(begun).toEqual(["live", "urgent", "queued"]);
  });

  test("G5: reject is refused while busy, and accepted when idle", {
    meta: { id: "G5/reject-while-busy" },
  }, async () => {
    const { belay, began } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    const live = session.prompt("live");
    await began("live");
    await expect(session.prompt("now", { delivery: "reject" }).accepted).rejects.toMatchObject({ code: "busy" });
    await live.cancel({ waitMs: 1000 });
    expect(await session.prompt("now", { delivery: "reject" }).outcome).toEqual({ kind: "completed" });
  });
});

describe("the queue", () => {
  test("G6: can be listed, edited, moved, withdrawn and steered until its runs start", async () => {
    const { belay, began, begun } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    const live = session.prompt("live");
    await began("live");
    const [a, b, c, d] = ["a", "b", "c", "d"].map((text) => session.prompt(text));
    await d?.accepted;
    expect((await session.queue.list()).map((run) => run.prompt.text)).toEqual(["a", "b", "c", "d"]);
    expect(await session.queue.edit(a?.id ?? "", "a2")).toMatchObject({ kind: "changed" });
    expect(await session.queue.move(c?.id ?? "", "front")).toMatchObject({ kind: "changed" });
    expect(await session.queue.withdraw(b?.id ?? "")).toMatchObject({ kind: "changed" });
    expect(await session.queue.steer(d?.id ?? "")).toMatchObject({ kind: "changed" });
    expect(await session.queue.edit(live.id, "no")).toEqual({ kind: "started" });
    expect(await session.queue.edit("run_never", "no")).toEqual({ kind: "unknown" });
    await live.cancel();
    await Promise.all([a, b, c, d].map((run) => run?.outcome));
    expect(begun).toEqual(["live", "c", "a2", "d"]);
  });

  test("G6: is limited, and refuses more", { meta: { id: "G6/full-queue-refuses" } }, async () => {
    const { belay, began } = await openTestBelay({ live: waits });
    const session = await belay.createSession();
    session.prompt("live");
    await began("live");
    const runs = Array.from({ length: 100 }, (_, index) => session.prompt(`${index}`));
    await runs.at(-1)?.accepted;
    await expect(session.prompt("one more").accepted).rejects.toMatchObject({ code: "queue_full", retryable: true });
    await session.cancel();
  });
});

describe("bad input", () => {
  const bad: readonly (readonly [string, unknown, unknown])[] = [
    ["an empty prompt", "", {}],
    ["a blank prompt", "  \n", {}],
    ["a number", 7, {}],
    ["nothing", undefined, {}],
    ["an unknown field", { text: "x", role: "user" }, {}],
    ["data that is not JSON", { text: "x", data: { f: () => 1 } }, {}],
    ["data that is not finite", { text: "x", data: [Number.NaN] }, {}],
    ["data that is nested too deeply", { text: "x", data: JSON.parse(`${"[".repeat(70)}${"]".repeat(70)}`) }, {}],
    ["a prompt that is too large", "x".repeat(1024 * 1024 + 1), {}],
    ["an unknown delivery", "x", { delivery: "later" }],
    ["an empty key", "x", { key: "" }],
    ["a key that is too long", "x", { key: "k".repeat(257) }],
    ["an unknown option", "x", { priority: 1 }],
  ];
  test.each(bad)(
    "G3: %s is refused with a code and leaves no trace",
    { meta: { id: "G3/bad-prompt-leaves-nothing" } },
    async (_, prompt, options) => {
      const { belay } = await openTestBelay();
      const session = await belay.createSession();
      const head = await heads(session);
      expect(() => session.prompt(prompt as string, options as object)).toThrow(
        expect.objectContaining({ name: "ControlError", code: "invalid", retryable: false, hint: expect.any(String) }),
      );
      expect(await heads(session)).toBe(head);
    },
  );

  test("G3: a prompt for a session that does not exist is refused, and creates none", async () => {
    const { belay } = await openTestBelay();
    const run = belay.session("ses_nowhere").prompt("hello");
    await expect(run.accepted).rejects.toMatchObject({ code: "not_found" });
    expect(await run.cancel()).toEqual({ kind: "unknown" });
    expect(await belay.sessions()).toEqual([]);
    const nowhere = belay.session("ses_nowhere");
    const asks = [
      () => nowhere.explain(),
      () => nowhere.runs(),
      () => nowhere.transcript(),
      () => nowhere.events().next(),
    ];
    for (const ask of asks) await expect(ask()).rejects.toMatchObject({ code: "not_found" });
  });

  test.each([
    ["a bad id", () => ({ id: "nope" })],
    ["a bad title", () => ({ title: 7 })],
    ["an unknown option", () => ({ name: "x" })],
  ])("G3: createSession() refuses %s", async (_, options) => {
    const { belay } = await openTestBelay();
    await expect(belay.createSession(options() as object)).rejects.toMatchObject({ code: "invalid" });
    expect(await belay.sessions()).toEqual([]);
  });

  test("a lone surrogate in a prompt is replaced, so that the log is well-formed", {
    meta: { id: "prompt/lone-surrogate-replaced" },
  }, async () => {
    const { belay, begun } = await openTestBelay();
    const session = await belay.createSession();
    await session.prompt("half a \ud83d pair").outcome;
    expect(begun).toEqual(["half a \ufffd pair"]);
  });

  test("a cancel with a bad reason is refused", async () => {
    const { belay } = await openTestBelay();
    const session = await belay.createSession();
    await expect(session.cancel({ reason: { kind: "shutdown" } as never })).rejects.toMatchObject({ code: "invalid" });
    await expect(session.cancel({ force: true } as never)).rejects.toMatchObject({ code: "invalid" });
    await expect(belay.cancel("everything")).rejects.toMatchObject({ code: "invalid" });
  });
});

test("an invalid return value of an agent fails its run, not the worker", async () => {
  const { belay } = await openTestBelay({ odd: () => ({ text: 7 }) as never });
  const session = await belay.createSession();
  expect(await session.prompt("odd").outcome).toMatchObject({ kind: "failed", code: "invalid" });
  expect(await session.prompt("next").outcome).toEqual({ kind: "completed" });
});

describe("a prompt that creates its own session", () => {
  test("is recorded together with its session, and covered by a cancel of the same tick", async () => {
    const { belay, begun } = await openTestBelay();
    const run = belay.prompt("one", { title: "by itself" });
    const other = belay.prompt("two");
    const receipt = other.cancel();
    expect(await run.outcome).toEqual({ kind: "completed" });
    expect(run.sessionId).not.toBe(other.sessionId);
    expect((await receipt).kind).toMatch(/withdrawn|stopping/);
    expect(await other.outcome).toMatchObject({ kind: "cancelled" });
    expect(begun).toEqual(["one"]);
    const [first] = await belay.sessions();
    expect(first).toMatchObject({ id: run.sessionId, title: "by itself" });
    const again = belay.session(run.sessionId).prompt("three");
    expect(await again.outcome).toEqual({ kind: "completed" });
  });

  test("G2: with the same key is the same session and the same run; another prompt is a conflict", async () => {
    const { belay, begun } = await openTestBelay();
    const one = belay.prompt("once", { key: "k" });
    const two = belay.prompt("once", { key: "k" });
    expect((await one.accepted).runId).toBe((await two.accepted).runId);
    expect(two.sessionId).toBe(one.sessionId);
    await one.outcome;
    await expect(belay.prompt("twice", { key: "k" }).accepted).rejects.toMatchObject({ code: "conflict" });
    expect(begun).toEqual(["once"]);
  });

  test("G2: has a key that never names a session created with that key", async () => {
    const { belay } = await openTestBelay();
    for (const tenant of [{}, { tenant: "acme" }]) {
      const ids = new Set([belay.prompt("x", { key: "x", ...tenant }).sessionId]);
      const keys = ["x", "prompt x", "session x", "session prompt x", "session session x"];
      for (const key of keys) ids.add((await belay.createSession({ key, ...tenant })).id);
      expect(ids.size).toBe(keys.length + 1);
    }
  });

  test("G2: with another title or directory under the same key is a conflict", async () => {
    const { belay, begun } = await openTestBelay();
    const [title, cwd] = ["one", resolve("src")];
    const first = belay.prompt("once", { key: "k", title, cwd });
    const { runId } = await first.accepted;
    expect(await belay.prompt("once", { key: "k", cwd, title }).accepted).toMatchObject({ runId, repeated: true });
    await first.outcome;
    for (const other of [{}, { title }, { cwd }, { title: "two", cwd }, { title, cwd: resolve("docs") }]) {
      await expect(belay.prompt("once", { key: "k", ...other }).accepted).rejects.toMatchObject({ code: "conflict" });
    }
    expect(begun).toEqual(["once"]);
  });

  test("G3: leaves no trace when a closing Belay refuses it", async () => {
    const { belay } = await openTestBelay();
    await belay.close();
    await expect(belay.prompt("late").accepted).rejects.toMatchObject({ code: "shutting_down" });
  });
});
