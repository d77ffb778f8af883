// Sessions that are loaded, listed, closed, deleted, left and returned to; on any transport, in either version.
import { describe, expect, test } from "vitest";
import type { PeerSession } from "./peer.ts";
import type { SessionFixture } from "./session-fixture.ts";
import { fieldsOf, textOf } from "./transcript.ts";

/** What people asked, as it is told. */
function asked(session: PeerSession): readonly string[] {
  return session.updates.flatMap((one) => {
    if (one.sessionUpdate === "user_message_chunk") return [textOf(fieldsOf(one.content).text)];
    if (one.sessionUpdate !== "user_message" || !Array.isArray(one.content)) return [];
    return [textOf(fieldsOf(one.content[0]).text)];
  });
}

export function historyTests(scene: SessionFixture): void {
  const isFirst = scene.version === 1;

  async function listed(): Promise<readonly string[]> {
    const { sessions } = await scene.peer.request("session/list", { cwd: scene.stage.dir });
    return Array.isArray(sessions) ? sessions.map((one) => textOf(fieldsOf(one).sessionId)) : [];
  }

  describe("a session that there is", () => {
    test("opened from its start tells everything that was, in order, before the answer", async () => {
      const session = await scene.session();
      const g = scene.gate();
      scene.gates.open(g);
      await session.prompt(`say one; call read_file ${g}; say two`).ended;
      await session.prompt("say three").ended;
      const again = await scene.peer.open(session.id, session.cwd);
      expect(asked(again)).toEqual([`say one; call read_file ${g}; say two`, "say three"]);
      expect(again.said).toBe("one[read_file completed]twothree");
      expect((await again.callEnd(await again.call("read_file"))).status).toBe("completed");
      if (!isFirst) expect(again.updates.at(-1)).toMatchObject({ sessionUpdate: "state_update", state: "idle" });
      expect((await again.prompt("say four").ended).stopReason).toBe("end_turn");
    });

    test("opened from now on tells nothing that was", async () => {
      const session = await scene.session();
      await session.prompt("say one").ended;
      const again = await scene.peer.open(session.id, session.cwd, "now");
      expect(again.said).toBe("");
      expect(again.updates.map((one) => one.state)).toEqual(isFirst ? [] : ["idle"]);
      await again.prompt("say two").ended;
      expect(again.said).toBe("two");
    });

    test("is opened in its own directory and no other", async () => {
      const session = await scene.session();
      const method = isFirst ? "session/load" : "session/resume";
      expect((await session.refused(method, { cwd: "/", mcpServers: [] })).code).toBe(-32602);
      expect((await session.prompt("say on").ended).stopReason).toBe("end_turn");
    });

    test("that is not there cannot be opened", async () => {
      await scene.session();
      const method = isFirst ? "session/load" : "session/resume";
      const params = { sessionId: "ses_nowhere", cwd: scene.stage.dir, mcpServers: [] };
      expect((await scene.peer.refused(method, params)).code).toBe(-32002);
    });

    test("is listed with its directory and what was asked first", async () => {
      const session = await scene.session();
      await session.prompt("say hello").ended;
      const { sessions } = await scene.peer.request("session/list", { cwd: scene.stage.dir });
      expect(sessions).toContainEqual({
        ...{ sessionId: session.id, cwd: session.cwd, title: "say hello", updatedAt: expect.any(String) },
      });
      expect(await scene.peer.request("session/list", { cwd: "/nowhere" })).toEqual({ sessions: [] });
    });

    test("closed: what goes on is cancelled and told first, and it can be opened again", async () => {
      const session = await scene.session();
      const g = scene.gate();
      const prompts = [session.prompt(`say one; call read_file ${g}`), session.prompt("say two")];
      await scene.gates.reached(g);
      const closed = session.request("session/close");
      const order: string[] = [];
      await Promise.all([
        closed.then(() => order.push("closed")),
        ...prompts.map(({ ended }) => ended.then(({ stopReason }) => order.push(stopReason))),
      ]);
      expect(order).toEqual(["cancelled", "cancelled", "closed"]);
      expect(await listed()).toContain(session.id);
      expect((await session.refused("session/prompt", { prompt: [{ type: "text", text: "say x" }] })).code).toBe(
        -32002,
      );
      const again = await scene.peer.open(session.id, session.cwd);
      expect((await again.prompt("say three").ended).stopReason).toBe("end_turn");
    });

    test("deleted: it is not listed, and cannot be opened", async () => {
      const session = await scene.session();
      const g = scene.gate();
      const live = session.prompt(`gate ${g}`);
      await scene.gates.reached(g);
      const deleted = session.request("session/delete");
      expect((await live.ended).stopReason).toBe("cancelled");
      await deleted;
      expect(await listed()).not.toContain(session.id);
      const method = isFirst ? "session/load" : "session/resume";
      expect((await session.refused(method, { cwd: session.cwd, mcpServers: [] })).code).toBe(-32002);
    });
  });

  describe("an editor that leaves", () => {
    test("stops nothing: whoever returns is told everything, and the prompt is not repeated", async () => {
      const first = await scene.connect();
      const session = await first.newSession(scene.stage.dir);
      const g = scene.gate();
      void session.prompt(`say one; gate ${g}; say two`).answer.catch(() => {});
      await scene.gates.reached(g);
      await first.drop();
      scene.gates.open(g);
      const second = await scene.connect();
      const again = await second.open(session.id, session.cwd);
      await again.sees("two");
      expect(again.said).toBe("onetwo");
      expect(asked(again)).toHaveLength(1);
      expect(scene.gates.count(g)).toBe(1);
      expect((await again.prompt("say three").ended).stopReason).toBe("end_turn");
      await second.drop();
    }, 30_000);

    test("and returns in the middle can stop what it had begun", async () => {
      const first = await scene.connect();
      const session = await first.newSession(scene.stage.dir);
      const g = scene.gate();
      void session.prompt(`call read_file ${g}`).answer.catch(() => {});
      await scene.gates.reached(g);
      await first.drop();
      const again = await scene.peer.open(session.id, session.cwd);
      const call = await again.call("read_file");
      await again.cancel();
      expect((await again.callEnd(call)).status).toBe(isFirst ? "failed" : "cancelled");
      expect((await again.prompt("say on").ended).stopReason).toBe("end_turn");
    }, 30_000);

    test("leaves its question behind, and whoever returns is asked", async () => {
      const first = await scene.connect();
      const session = await first.newSession(scene.stage.dir, "never");
      void session.prompt("approve write_file").answer.catch(() => {});
      await session.when((updates) => updates.find((one) => one.status === "pending"));
      await first.drop();
      scene.peer.permits.set(session.id, "allow");
      const again = await scene.peer.open(session.id, session.cwd);
      await again.sees("[write_file completed]");
    }, 30_000);
  });
}
