// Prompts on any transport, in either version: said, queued, steered, failed.
import { describe, expect, test } from "vitest";
import type { SessionFixture } from "./session-fixture.ts";
import { belayOf, fieldsOf } from "./transcript.ts";

export function promptTests(scene: SessionFixture): void {
  const isFirst = scene.version === 1;

  describe("prompts", () => {
    test("a prompt: everything is told before its end, and its run has a name", async () => {
      const session = await scene.session();
      const { stopReason, runId } = await session.prompt("think of it; say hello ; say there").ended;
      expect(stopReason).toBe("end_turn");
      expect(session.said).toBe("hello there");
      expect(session.thought).toBe("of it");
      expect(runId).toMatch(/^run_/);
      expect(belayOf(session.updates.find((one) => one.sessionUpdate === "agent_message_chunk")).runId).toBe(runId);
    });

    test("the SDK understands everything it is told", async () => {
      const session = await scene.session("allow");
      const g = scene.gate();
      scene.gates.open(g);
      const heardBefore = scene.peer.heard.length;
      await session.prompt(`think so; say a; call read_file ${g}; approve write_file; sh echo up; say b`).ended;
      // Whoever is answered has been told what came before.
      await session.request("_belay/session/explain");
      const told = session.updates.map((one) => one.sessionUpdate);
      expect(scene.peer.heard.slice(heardBefore).map((one) => one.sessionUpdate)).toEqual(told);
      expect(told.length).toBeGreaterThan(8);
    });

    test("two prompts: the second is held, each is answered once, in order", async () => {
      const session = await scene.session();
      const g = scene.gate();
      const first = session.prompt(`say one; gate ${g}`);
      const second = session.prompt("say two");
      await Promise.all([scene.gates.reached(g), session.sees("one")]);
      scene.gates.open(g);
      const ends = await Promise.all([first.ended, second.ended]);
      expect(ends.map(({ stopReason }) => stopReason)).toEqual(["end_turn", "end_turn"]);
      expect(session.said).toBe("onetwo");
      expect(new Set(ends.map(({ runId }) => runId)).size).toBe(2);
    });

    test("twenty prompts at once run in the order in which they were sent", async () => {
      const session = await scene.session();
      const numbers = Array.from({ length: 20 }, (_, index) => `${index}.`);
      await Promise.all(numbers.map((one) => session.prompt(`say ${one}`).ended));
      expect(session.said).toBe(numbers.join(""));
    });

    test("two sessions of one connection do not wait for each other", async () => {
      const [one, other] = [await scene.session(), await scene.session()];
      const g = scene.gate();
      const held = one.prompt(`gate ${g}`);
      await scene.gates.reached(g);
      expect((await other.prompt("say free").ended).stopReason).toBe("end_turn");
      scene.gates.open(g);
      expect((await held.ended).stopReason).toBe("end_turn");
    });

    test("a run that fails says so, with its code and its name", async () => {
      const session = await scene.session();
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

    test("the end says how it ended, and in the first version what it has used up", async () => {
      const session = await scene.session();
      const asked = session.prompt("say so; use 7");
      await asked.ended;
      const end = isFirst ? await asked.answer : session.updates.findLast((one) => one.state === "idle");
      const usage = { usage: { inputTokens: 7 }, outcome: { kind: "completed" } };
      expect(belayOf(end)).toMatchObject(isFirst ? usage : { status: "completed" });
    });

    test("a steer reaches the live run; without one it is a prompt of its own", async () => {
      const session = await scene.session();
      const g = scene.gate();
      const asked = session.prompt(`say one; gate ${g}; steers`);
      await scene.gates.reached(g);
      const steer = { prompt: [{ type: "text", text: "say more" }] };
      expect(await session.request("_session/steering", steer)).toMatchObject({ outcome: "injected" });
      scene.gates.open(g);
      await asked.ended;
      expect(session.said).toBe("one[steered say more]");
      expect(await session.request("_session/steering", steer)).toMatchObject({ outcome: "startedNewTurn" });
      await session.sees("]more");
    });

    test("a session can be asked why it is busy", async () => {
      const session = await scene.session();
      const g = scene.gate();
      const asked = session.prompt(`gate ${g}`);
      await scene.gates.reached(g);
      expect(await session.request("_belay/session/explain")).toMatchObject({ busy: true, sessionId: session.id });
      scene.gates.open(g);
      await asked.ended;
    });
  });

  describe("what is wrong is refused with a code, and the connection is usable", () => {
    test("a session that is not there", async () => {
      const session = await scene.session();
      const { code, data } = await scene.peer.refused("session/prompt", {
        sessionId: "ses_nowhere",
        prompt: [{ type: "text", text: "say x" }],
      });
      expect([code, fieldsOf(data).code]).toEqual([-32002, "not_found"]);
      expect((await session.prompt("say on").ended).stopReason).toBe("end_turn");
    });

    test("a method that is not there", async () => {
      const session = await scene.session();
      expect((await session.refused("session/fly")).code).toBe(-32601);
      expect((await session.refused("_other/thing")).code).toBe(-32601);
      await scene.peer.notify("_other/note", { sessionId: session.id });
      expect((await session.prompt("say on").ended).stopReason).toBe("end_turn");
    });

    test("a prompt without anything in it, and one of a kind that is not taken", async () => {
      const session = await scene.session();
      expect((await session.refused("session/prompt", { prompt: [] })).code).toBe(-32602);
      const audio = { type: "audio", data: "", mimeType: "audio/wav" };
      expect((await session.refused("session/prompt", { prompt: [audio] })).code).toBe(-32602);
      expect((await session.prompt("say on").ended).stopReason).toBe("end_turn");
    });

    test("a directory that is none", async () => {
      const refused = await scene.peer.refused("session/new", { cwd: `${scene.stage.dir}/nowhere`, mcpServers: [] });
      expect(refused.code).toBe(-32602);
      expect((await scene.peer.refused("session/new", { cwd: "here", mcpServers: [] })).code).toBe(-32602);
    });
  });
}
