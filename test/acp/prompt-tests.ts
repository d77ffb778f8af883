// Prompts on any transport, in either version: answered, queued, steered, failed.
import { describe, expect, test } from "vitest";
import type { SessionFixture } from "./session-fixture.ts";
import { belayOf, fieldsOf } from "./transcript.ts";

export function promptTests(fixture: SessionFixture): void {
  const isFirst = fixture.version === 1;

  describe("prompts", () => {
    test("all updates of a prompt precede its end, and its run has an id", async () => {
      const session = await fixture.session();
      const { stopReason, runId } = await session.prompt("think of it; say hello ; say there").ended;
      expect(stopReason).toBe("end_turn");
      expect(session.said).toBe("hello there");
      expect(session.thought).toBe("of it");
      expect(runId).toMatch(/^run_/);
      expect(belayOf(session.updates.find((one) => one.sessionUpdate === "agent_message_chunk")).runId).toBe(runId);
    });

    test("the SDK accepts every update", async () => {
      const session = await fixture.session("allow");
      const g = fixture.gate();
      fixture.gates.open(g);
      const heardBefore = fixture.peer.heard.length;
      await session.prompt(`think so; say a; call read_file ${g}; approve write_file; sh echo up; say b`).ended;
      // All updates before an answer have arrived by then.
      await session.request("_belay/session/explain");
      const told = session.updates.map((one) => one.sessionUpdate);
      expect(fixture.peer.heard.slice(heardBefore).map((one) => one.sessionUpdate)).toEqual(told);
      expect(told.length).toBeGreaterThan(8);
    });

    test("a second prompt is held, and both are answered once, in order", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const first = session.prompt(`say one; gate ${g}`);
      const second = session.prompt("say two");
      await Promise.all([fixture.gates.reached(g), session.sees("one")]);
      fixture.gates.open(g);
      const ends = await Promise.all([first.ended, second.ended]);
      expect(ends.map(({ stopReason }) => stopReason)).toEqual(["end_turn", "end_turn"]);
      expect(session.said).toBe("onetwo");
      expect(new Set(ends.map(({ runId }) => runId)).size).toBe(2);
    });

    test("twenty prompts at once run in the order in which they were sent", async () => {
      const session = await fixture.session();
      const numbers = Array.from({ length: 20 }, (_, index) => `${index}.`);
      await Promise.all(numbers.map((one) => session.prompt(`say ${one}`).ended));
      expect(session.said).toBe(numbers.join(""));
    });

    test("two sessions of one connection do not wait for each other", async () => {
      const [one, other] = [await fixture.session(), await fixture.session()];
      const g = fixture.gate();
      const held = one.prompt(`gate ${g}`);
      await fixture.gates.reached(g);
      expect((await other.prompt("say free").ended).stopReason).toBe("end_turn");
      fixture.gates.open(g);
      expect((await held.ended).stopReason).toBe("end_turn");
    });

    test("a failed run is reported with its code and id", async () => {
      const session = await fixture.session();
      const asked = session.prompt("say so; fail it broke");
      if (isFirst) {
        await expect(asked.answer).rejects.toMatchObject({
          code: -32603,
          message: expect.stringContaining("it broke"),
          data: { code: expect.any(String), runId: expect.stringMatching(/^run_/) },
        });
      } else {
        expect((await asked.ended).stopReason).toBe("error");
        const idle = session.updates.findLast((one) => one.state === "idle");
        expect(idle?.error).toMatchObject({ code: -32603, message: expect.stringContaining("it broke") });
      }
      expect((await session.prompt("say on").ended).stopReason).toBe("end_turn");
    });

    test("the end reports the outcome, and in version 1 the usage", async () => {
      const session = await fixture.session();
      const asked = session.prompt("say so; use 7");
      await asked.ended;
      const end = isFirst ? await asked.answer : session.updates.findLast((one) => one.state === "idle");
      const usage = { usage: { inputTokens: 7 }, outcome: { kind: "completed" } };
      expect(belayOf(end)).toMatchObject(isFirst ? usage : { status: "completed" });
    });

    test("a steer reaches the live run; without one it starts a run", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const asked = session.prompt(`say one; gate ${g}; steers`);
      await fixture.gates.reached(g);
      const steer = { prompt: [{ type: "text", text: "say more" }] };
      expect(await session.request("_session/steering", steer)).toMatchObject({ outcome: "injected" });
      fixture.gates.open(g);
      await asked.ended;
      expect(session.said).toBe("one[steered say more]");
      expect(await session.request("_session/steering", steer)).toMatchObject({ outcome: "startedNewTurn" });
      await session.sees("]more");
    });

    test("_belay/session/explain says why a session is busy", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const asked = session.prompt(`gate ${g}`);
      await fixture.gates.reached(g);
      expect(await session.request("_belay/session/explain")).toMatchObject({ busy: true, sessionId: session.id });
      fixture.gates.open(g);
      await asked.ended;
    });
  });

  describe("an invalid request is refused with a code, and the connection stays usable", () => {
    test("an unknown session", async () => {
      const session = await fixture.session();
      const { code, data } = await fixture.peer.refused("session/prompt", {
        sessionId: "ses_nowhere",
        prompt: [{ type: "text", text: "say x" }],
      });
      expect([code, fieldsOf(data).code]).toEqual([-32002, "not_found"]);
      expect((await session.prompt("say on").ended).stopReason).toBe("end_turn");
    });

    test("an unknown method", async () => {
      const session = await fixture.session();
      expect((await session.refused("session/fly")).code).toBe(-32601);
      expect((await session.refused("_other/thing")).code).toBe(-32601);
      await fixture.peer.notify("_other/note", { sessionId: session.id });
      expect((await session.prompt("say on").ended).stopReason).toBe("end_turn");
    });

    test("an empty prompt, and one of an unsupported kind", async () => {
      const session = await fixture.session();
      expect((await session.refused("session/prompt", { prompt: [] })).code).toBe(-32602);
      const audio = { type: "audio", data: "", mimeType: "audio/wav" };
      expect((await session.refused("session/prompt", { prompt: [audio] })).code).toBe(-32602);
      expect((await session.prompt("say on").ended).stopReason).toBe("end_turn");
    });

    test("a directory that does not exist", async () => {
      const refused = await fixture.peer.refused("session/new", { cwd: `${fixture.acp.dir}/nowhere`, mcpServers: [] });
      expect(refused.code).toBe(-32602);
      expect((await fixture.peer.refused("session/new", { cwd: "here", mcpServers: [] })).code).toBe(-32602);
    });
  });
}
