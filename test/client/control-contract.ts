// What everybody who holds a BelayControl may rely on, wherever it runs. Written against the interface alone: run once
// with the library and once with the client, it shows that changing one line is enough.
import { realpathSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { RunControl, SessionsPage } from "../../src/ports/control.ts";
import { controlContractStops } from "./control-contract-stops.ts";
import { controlContractViews } from "./control-contract-views.ts";
import { factsOf, MODES, type Open, staged } from "./control-fixture.ts";

export function controlContract(name: string, open: Open): void {
  describe(`${name}: prompts`, () => {
    test("a prompt is accepted, carried out, and ends in its own outcome", async () => {
      const { agent, session, control } = await staged(open);
      const run = session.prompt({ text: "hello", data: { n: 1 } });
      const accepted = await run.accepted;
      expect(accepted).toMatchObject({ kind: "accepted", runId: run.id, joined: "queue", ahead: 0, repeated: false });
      const facts = factsOf(run);
      const turn = await agent.nextTurn();
      expect(turn.given.prompt).toEqual({ text: "hello", data: { n: 1 } });
      expect(await run.row()).toMatchObject({ id: run.id, session: session.id, phase: "live" });
      turn.complete("Hi there.");
      expect(await run.outcome).toEqual({ kind: "completed" });
      expect(await run.text()).toBe("Hi there.");
      expect((await facts).map(({ type }) => type)).toEqual([
        ...["run.accepted", "run.started", "turn.requested", "turn.settled", "run.settled"],
      ]);
      expect(await session.transcript()).toMatchObject([{ role: "user" }, { role: "assistant" }]);
      expect(await run.row()).toMatchObject({ phase: "settled", outcome: { kind: "completed" } });
      const again = await control.run(run.id);
      expect(await again.outcome).toEqual({ kind: "completed" });
      expect(await again.text()).toBe("Hi there.");
    });

    test("text is heard as it comes, each piece once", async () => {
      const { agent, session } = await staged(open);
      const run = session.prompt("hello");
      let said = "";
      const heard = (async () => {
        for await (const event of run) if (event.type === "delta") said += event.text;
      })();
      const turn = await agent.nextTurn();
      for (const piece of ["One, ", "two, ", "three."]) {
        turn.say(piece);
        await expect.poll(() => said).toMatch(new RegExp(`${piece}$`));
      }
      turn.complete();
      await heard;
      expect(said).toBe("One, two, three.");
    });

    test("prompts of one tick are carried out in the order of the calls", async () => {
      const { agent, session } = await staged(open);
      const texts = ["a", "b", "c", "d", "e"];
      const runs = texts.map((text) => session.prompt(text));
      for (const text of texts) {
        const turn = await agent.nextTurn();
        expect(turn.given.prompt.text).toBe(text);
        turn.complete();
      }
      for (const run of runs) expect(await run.outcome).toEqual({ kind: "completed" });
    });

    test("G2: the same key and prompt are one run, another prompt under it is a conflict", async () => {
      const { agent, session } = await staged(open);
      const [one, two] = [session.prompt("x", { key: "k" }), session.prompt("x", { key: "k" })];
      const first = await one.accepted;
      expect(await two.accepted).toMatchObject({ runId: first.runId, repeated: true });
      await expect(session.prompt("y", { key: "k" }).accepted).rejects.toMatchObject({ code: "conflict" });
      (await agent.nextTurn()).complete();
      expect(await two.outcome).toEqual({ kind: "completed" });
      expect(await session.runs()).toHaveLength(1);
    });

    test("a prompt with its own session, and sessions by id and by key", async () => {
      const { agent, control } = await staged(open);
      const run = control.prompt("one shot", { key: "once", title: "One" });
      await run.accepted;
      (await agent.nextTurn()).complete("done");
      expect(await run.text()).toBe("done");
      expect(await control.session(run.sessionId).row()).toMatchObject({ title: "One", phase: "open" });
      const again = control.prompt("one shot", { key: "once", title: "One" });
      expect(await again.accepted).toMatchObject({ runId: run.id, repeated: true });
      const named = await control.createSession({ id: "ses_mine" });
      expect((await control.createSession({ id: "ses_mine" })).id).toBe(named.id);
      const keyed = await control.createSession({ key: "k" });
      expect((await control.createSession({ key: "k" })).id).toBe(keyed.id);
      const ids = (await control.sessions()).map(({ id }) => id);
      expect(ids).toEqual(expect.arrayContaining([run.sessionId, "ses_mine", keyed.id]));
      expect((await control.sessions({ after: ids[0] ?? "", limit: 1 })).map(({ id }) => id)).toEqual([ids[1]]);
    });

    test("sessions are listed newest first, and ids are found by their prefix", async () => {
      const { agent, session, control } = await staged(open);
      for (const id of ["ses_prefix", "ses_prefix-2"]) await control.createSession({ id });
      const newest = async (page: SessionsPage): Promise<readonly string[]> =>
        (await control.sessions({ order: "newest", ...page })).map(({ id }) => id);
      expect(await newest({ limit: 2 })).toEqual(["ses_prefix-2", "ses_prefix"]);
      expect(await newest({ before: "ses_prefix", limit: 1 })).toEqual([session.id]);
      await expect((async () => newest({ after: "ses_prefix" }))()).rejects.toMatchObject({ code: "invalid" });
      expect(await control.ids("ses_prefix")).toEqual({ ids: ["ses_prefix", "ses_prefix-2"], complete: true });
      expect(await control.ids("ses_prefix", { limit: 1 })).toEqual({ ids: ["ses_prefix"], complete: false });
      expect(await control.ids("nothing")).toEqual({ ids: [], complete: true });
      await expect((async () => control.ids("x".repeat(129)))()).rejects.toMatchObject({ code: "invalid" });
      const run = session.prompt("a live call");
      const turn = await agent.nextTurn();
      void turn.given.call("slow", {}, () => new Promise(() => {}));
      for await (const event of session.events()) if (event.type === "call.requested") break;
      const number = run.id.slice(4);
      expect((await control.ids(`call_${number}`)).ids).toEqual([`call_${number}.1`]);
      expect((await control.ids(run.id)).ids).toEqual([run.id]);
    });

    test("a session works in the directory it was given, and in none that may not be chosen", async () => {
      const { agent, control } = await staged(open);
      const cwd = realpathSync(process.cwd());
      const made = await control.createSession({ key: "here", cwd });
      expect(await made.row()).toMatchObject({ id: made.id, cwd });
      expect((await control.createSession({ key: "here", cwd: `${cwd}/.` })).id).toBe(made.id);
      await expect(control.createSession({ key: "here" })).rejects.toMatchObject({ code: "conflict" });
      const run = control.prompt("go", { cwd });
      const turn = await agent.nextTurn();
      expect(turn.given.cwd).toBe(cwd);
      turn.complete();
      await run.outcome;
      expect(await control.session(run.sessionId).row()).toMatchObject({ cwd });
      const before = await control.sessions();
      const bad = [
        ["/", "forbidden"],
        [`${cwd}/nowhere`, "invalid"],
        [".", "invalid"],
      ] as const;
      for (const [one, code] of bad) {
        await expect(control.createSession({ cwd: one })).rejects.toMatchObject({ code });
        await expect((async () => control.prompt("go", { cwd: one }).accepted)()).rejects.toMatchObject({ code });
      }
      expect(await control.sessions()).toEqual(before);
    });

    test("G3: what is refused leaves no trace", async () => {
      const { agent, session, control } = await staged(open);
      expect(() => session.prompt(" ")).toThrow(/empty/);
      await expect(control.session("ses_nobody").prompt("x").accepted).rejects.toMatchObject({ code: "not_found" });
      await expect(control.session("ses_nobody").row()).rejects.toMatchObject({ code: "not_found" });
      await expect(control.run("run_nobody")).rejects.toMatchObject({ code: "not_found" });
      const live = session.prompt("live");
      const turn = await agent.nextTurn();
      await expect(session.prompt("no", { delivery: "reject" }).accepted).rejects.toMatchObject({ code: "busy" });
      turn.complete();
      await live.outcome;
      await session.close();
      await expect(session.prompt("x").accepted).rejects.toMatchObject({ code: "closed" });
      expect(await session.row()).toMatchObject({ phase: "closed" });
      expect(await session.runs()).toHaveLength(1);
    });
  });

  describe(`${name}: the queue`, () => {
    test("G6: can be read, edited, moved, withdrawn and turned into a steer", async () => {
      const { agent, session } = await staged(open);
      session.prompt("live");
      const turn = await agent.nextTurn();
      const [a, b, c, d] = ["a", "b", "c", "d"].map((text) => session.prompt(text)) as [RunControl, ...RunControl[]];
      if (b === undefined || c === undefined || d === undefined) throw new Error("Four were prompted.");
      for (const run of [a, b, c, d]) await run.accepted;
      expect(await session.queue.edit(a.id, { text: "A" })).toMatchObject({ kind: "changed" });
      expect(await session.queue.move(c.id, "front", { key: "m" })).toMatchObject({ kind: "changed" });
      expect(await session.queue.withdraw(b.id, { reason: "no" })).toMatchObject({ kind: "changed" });
      expect(await session.queue.steer(d.id)).toMatchObject({ kind: "changed" });
      expect(await session.queue.list()).toMatchObject([
        { runId: d.id, joined: "steer", prompt: { text: "d" } },
        { runId: c.id, joined: "queue", prompt: { text: "c" } },
        { runId: a.id, joined: "queue", prompt: { text: "A" } },
      ]);
      expect(await b.outcome).toMatchObject({ kind: "cancelled", reason: { kind: "user", note: "no" } });
      expect(await turn.takeSteers()).toEqual([{ text: "d" }]);
      expect(await d.outcome).toMatchObject({ kind: "completed", into: expect.stringMatching(/^run_/) });
      expect(await session.queue.move(d.id, "back")).toEqual({ kind: "unknown" });
      turn.complete();
      for (const text of ["c", "A"]) {
        const next = await agent.nextTurn();
        expect(next.given.prompt.text).toBe(text);
        next.complete();
      }
      expect(await a.outcome).toEqual({ kind: "completed" });
    });

    test("G6: can be cleared, and the live run continues; sent again, it covers nothing newer", async () => {
      const { agent, session } = await staged(open);
      const live = session.prompt("live");
      const turn = await agent.nextTurn();
      const waiting = [session.prompt("a"), session.prompt("b"), session.prompt("c", { delivery: "steer" })];
      for (const run of waiting) await run.accepted;
      const cleared = await session.queue.clear({ reason: "start over", key: "clear-1" });
      expect(cleared).toMatchObject({ kind: "withdrawn" });
      expect(cleared.runs.map(({ runId }) => runId).sort()).toEqual(waiting.map(({ id }) => id).sort());
      for (const run of waiting) {
        expect(await run.outcome).toMatchObject({ kind: "cancelled", reason: { note: "start over" } });
      }
      const later = session.prompt("later");
      await later.accepted;
      expect(await session.queue.clear({ reason: "start over", key: "clear-1" })).toEqual(cleared);
      expect(await session.queue.list()).toMatchObject([{ runId: later.id }]);
      expect(turn.given.signal.aborted).toBe(false);
      turn.complete();
      expect(await live.outcome).toEqual({ kind: "completed" });
      (await agent.nextTurn()).complete();
      expect(await later.outcome).toEqual({ kind: "completed" });
      expect(await session.queue.clear()).toMatchObject({ kind: "idle" });
    });
  });

  describe(`${name}: looking at it`, () => {
    test("G30: events are read from any position on, and leaving the loop cancels nothing", async () => {
      const { agent, session } = await staged(open);
      const run = session.prompt("hello");
      const turn = await agent.nextTurn();
      const heard: number[] = [];
      for await (const event of session.events()) {
        if ("seq" in event) heard.push(event.seq);
        if (event.type === "turn.requested") break;
      }
      const last = heard.at(-1) ?? 0;
      expect(heard).toEqual(Array.from({ length: last }, (_, index) => index + 1));
      turn.complete();
      for await (const event of session.events({ after: last })) {
        if ("seq" in event) heard.push(event.seq);
        if (event.type === "run.settled") break;
      }
      expect(heard).toEqual(heard.map((_, index) => index + 1));
      expect(await run.outcome).toEqual({ kind: "completed" });
      const enough = new AbortController();
      const first: unknown[] = [];
      for await (const event of session.events({ signal: enough.signal })) {
        first.push(event);
        if (first.length === 2) enough.abort();
      }
      expect(first).toHaveLength(2);
      const stop = new AbortController();
      const waiting = Array.fromAsync(session.pages({ after: heard.length, signal: stop.signal }));
      stop.abort();
      expect(await waiting).toEqual([]);
      await expect(session.processes.get("proc_nobody.1")).rejects.toMatchObject({ code: "not_found" });
      expect(await session.processes.list()).toEqual([]);
      expect(await session.processes.history()).toEqual([]);
    });

    test("what is going on is explained, found by any id, and counted", async () => {
      const { agent, session, control } = await staged(open);
      const run = session.prompt("hello");
      const queued = session.prompt("later");
      const turn = await agent.nextTurn();
      const call = turn.call("work");
      await queued.accepted;
      await expect.poll(async () => (await session.explain()).live?.calls.length).toBe(1);
      const explained = await session.explain();
      expect(explained).toMatchObject({ sessionId: session.id, busy: true, live: { runId: run.id, phase: "running" } });
      expect(explained.queue).toEqual([{ runId: queued.id, text: "later" }]);
      const callId = explained.live?.calls[0]?.callId ?? "";
      expect((await control.live()).map(({ sessionId }) => sessionId)).toEqual([session.id]);
      for (const id of [run.id, callId]) expect(await control.findSession(id)).toBe(session.id);
      expect(await control.findSession("run_nobody")).toBeUndefined();
      expect(await control.status()).toMatchObject({ phase: "open", load: { live: 1 } });
      expect((await session.runs({ limit: 1 })).map(({ id }) => id)).toEqual([queued.id]);
      const found = await control.run(queued.id);
      expect(await found.accepted).toMatchObject({ runId: queued.id, ahead: 1, repeated: true });
      await call.begun;
      await control.cancelAll();
      call.fail();
      turn.endCancelled();
      expect(await queued.outcome).toMatchObject({ kind: "cancelled" });
    });

    test("all sessions are followed, and the feed continues from a cursor", async () => {
      const { agent, session, control } = await staged(open);
      const watching = control.events();
      const here = (await watching.next()).value;
      expect(here).toMatchObject({ type: "here" });
      const run = session.prompt("hello");
      (await agent.nextTurn()).complete();
      await run.outcome;
      const types: string[] = [];
      for await (const told of watching) {
        if (told.type !== "event") throw new Error(`Nothing was missed, and yet it says ${told.type}.`);
        expect(told.sessionId).toBe(session.id);
        types.push(told.event.type);
        if (told.event.type === "run.settled") break;
      }
      const again: string[] = [];
      for await (const told of control.events({ after: here?.cursor ?? "" })) {
        if (told.type === "event") again.push(told.event.type);
        if (again.at(-1) === "run.settled") break;
      }
      expect(types).toEqual(["run.accepted", "run.started", "turn.requested", "turn.settled", "run.settled"]);
      expect(again).toEqual(types);
    });

    test("the model receives an item at its next turn, and a log is trimmed", async () => {
      const { agent, session } = await staged(open);
      expect(await session.post({ kind: "reminder", text: "Mind the gap." })).toMatchObject({ kind: "posted" });
      const run = session.prompt("hello");
      (await agent.nextTurn()).complete();
      expect((await factsOf(run)).map(({ type }) => type)).toContain("inbox.taken");
      const head = (await session.explain()).asOf;
      const { kept, removed } = await session.trim(head);
      expect(removed).toBe(kept - 1);
      // Never more than what is known without it, which of a short log is all.
      expect(kept).toBeGreaterThanOrEqual(1);
      expect(kept).toBeLessThanOrEqual(head);
    });

    test("a session is deleted with everything in it", async () => {
      const { agent, session, control } = await staged(open);
      const run = session.prompt("hello");
      (await agent.nextTurn()).complete();
      await run.outcome;
      expect(await session.delete({ reason: "not needed" })).toMatchObject({ kind: "deleted", sessionId: session.id });
      await expect(session.row()).rejects.toMatchObject({ code: "not_found" });
      await expect(control.run(run.id)).rejects.toMatchObject({ code: "not_found" });
      await expect(session.delete()).rejects.toMatchObject({ code: "not_found" });
      expect((await control.status()).store).toMatchObject({ sessions: expect.any(Number) });
    });

    test("a session has the mode of its agent until another is set, and none that the agent has not", async () => {
      const { agent, session, control } = await staged(open);
      expect(await control.status()).toMatchObject({ modes: MODES, mode: "auto" });
      expect((await session.explain()).mode).toBe("auto");
      const run = session.prompt("hello");
      const turn = await agent.nextTurn();
      expect(turn.given.mode).toBe("auto");
      const set = await session.setMode("ask", { by: "ann", key: "k" });
      expect(set).toMatchObject({ kind: "changed", mode: "ask" });
      expect(turn.given.mode).toBe("ask");
      expect((await session.explain()).mode).toBe("ask");
      expect(await session.setMode("ask")).toEqual({ kind: "unchanged", mode: "ask" });
      expect(await session.setMode("auto")).toMatchObject({ kind: "changed" });
      expect(await session.setMode("ask", { by: "ann", key: "k" })).toEqual(set);
      expect((await session.explain()).mode).toBe("auto");
      await expect(session.setMode("auto", { key: "k" })).rejects.toMatchObject({ code: "conflict" });
      for (const none of ["aks", "", "x".repeat(65)]) {
        await expect((async () => session.setMode(none))()).rejects.toMatchObject({ code: "invalid" });
      }
      await expect(session.setMode("aks")).rejects.toThrow("Did you mean ask? The modes are ask, auto.");
      await expect(control.session("ses_none").setMode("ask")).rejects.toMatchObject({ code: "not_found" });
      turn.complete();
      const facts = await factsOf(run);
      expect(facts.filter(({ type }) => type === "session.mode_set")).toEqual([]);
      await session.close();
      await expect(session.setMode("ask")).rejects.toMatchObject({ code: "closed" });
      const recorded: unknown[] = [];
      for await (const event of session.events()) {
        if (event.type === "session.mode_set") recorded.push([event.mode, event.by]);
        if (event.type === "session.closed") break;
      }
      // Behind the server's door whoever has no other name is called by that of their token.
      expect(recorded).toEqual([["ask", "ann"], expect.arrayContaining(["auto"])]);
    });

    test("G8: the events and the text of a run that is not kept any more end with a gap", async () => {
      const { agent, session, control } = await staged(open);
      const runs: RunControl[] = [];
      for (let count = 0; count < 60; count += 1) {
        const run = session.prompt(`${count}`);
        (await agent.nextTurn()).complete();
        await run.outcome;
        runs.push(run);
      }
      const { kept } = await session.trim(200);
      expect(kept).toBeGreaterThan(10);
      const run = await control.run(runs[0]?.id ?? "");
      const heard: string[] = [];
      for await (const event of run) heard.push(event.type);
      expect(heard).toEqual(["gap"]);
      await expect(run.text()).rejects.toMatchObject({ code: "not_found" });
      expect(await run.outcome).toEqual({ kind: "completed" });
    });
  });

  describe(`${name}: people`, () => {
    test("are asked, answer once, and are told if they come too late", async () => {
      const { agent, session, control } = await staged(open);
      session.prompt("hello");
      const turn = await agent.nextTurn();
      const answered = turn.given.ask({ text: "Which?", options: ["a", "b"], only: true });
      await expect.poll(async () => (await session.questions()).length).toBe(1);
      const [question] = await session.questions();
      const id = question?.id ?? "";
      await expect(control.questions.answer(id, "c")).rejects.toMatchObject({ code: "invalid" });
      expect(await control.questions.answer(id, "b", { by: "me" })).toEqual({ kind: "recorded", questionId: id });
      expect(await answered).toMatchObject({ kind: "answered", value: "b" });
      expect(await control.questions.answer(id, "a")).toMatchObject({ kind: "settled", ending: { value: "b" } });
      expect(await control.questions.answer("ask_nobody.1", "a")).toEqual({ kind: "unknown" });
      const calls = ["yes", "no"].map((input) => turn.call("write", input, () => "done", { approval: true }));
      await expect.poll(async () => (await session.questions()).length).toBe(2);
      for (const { id: each, about } of await session.questions()) {
        if (about.kind !== "approval") throw new Error("It is an approval.");
        await expect(control.questions.allow(each, { digest: "other" })).rejects.toMatchObject({ code: "conflict" });
        const { digest } = about;
        if (about.input === "yes") await control.questions.allow(each, { digest });
        else await control.questions.deny(each, { note: "too risky", by: "me" });
      }
      expect(await calls[0]?.result).toMatchObject({ kind: "completed", value: "done" });
      expect(await calls[1]?.result).toMatchObject({ kind: "failed", message: expect.stringContaining("too risky") });
      turn.complete();
    });
  });

  controlContractStops(name, open);
  controlContractViews(name, open);
}
