// Loading, listing, closing, deleting, leaving and returning to sessions; on any transport, in either version.
import { describe, expect, test } from "vitest";
import type { PeerSession } from "./peer.ts";
import type { SessionFixture } from "./session-fixture.ts";
import { fieldsOf, textOf } from "./transcript.ts";

/** The users' prompts, as reported. */
function asked(session: PeerSession): readonly string[] {
  return session.updates.flatMap((one) => {
    if (one.sessionUpdate === "user_message_chunk") return [textOf(fieldsOf(one.content).text)];
    if (one.sessionUpdate !== "user_message" || !Array.isArray(one.content)) return [];
    return [textOf(fieldsOf(one.content[0]).text)];
  });
}

export function historyTests(fixture: SessionFixture): void {
  const isFirst = fixture.version === 1;

  async function listed(): Promise<readonly string[]> {
    const { sessions } = await fixture.peer.request("session/list", { cwd: fixture.acp.dir });
    return Array.isArray(sessions) ? sessions.map((one) => textOf(fieldsOf(one).sessionId)) : [];
  }

  describe("an existing session", () => {
    test("opened from its start reports its whole history in order before the answer", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      fixture.gates.open(g);
      await session.prompt(`say one; call read_file ${g}; say two`).ended;
      await session.prompt("say three").ended;
      const again = await fixture.peer.open(session.id, session.cwd);
      expect(asked(again)).toEqual([`say one; call read_file ${g}; say two`, "say three"]);
      expect(again.said).toBe("one[read_file completed]twothree");
      expect((await again.callEnd(await again.call("read_file"))).status).toBe("completed");
      if (!isFirst) expect(again.updates.at(-1)).toMatchObject({ sessionUpdate: "state_update", state: "idle" });
      expect((await again.prompt("say four").ended).stopReason).toBe("end_turn");
    });

    test("opened from now on reports no history", async () => {
      const session = await fixture.session();
      await session.prompt("say one").ended;
      const again = await fixture.peer.open(session.id, session.cwd, "now");
      expect(again.said).toBe("");
      expect(again.updates.map((one) => one.state)).toEqual(isFirst ? [] : ["idle"]);
      await again.prompt("say two").ended;
      expect(again.said).toBe("two");
    });

    test("can be opened only in its own directory", async () => {
      const session = await fixture.session();
      const method = isFirst ? "session/load" : "session/resume";
      expect((await session.refused(method, { cwd: "/", mcpServers: [] })).code).toBe(-32602);
      expect((await session.prompt("say on").ended).stopReason).toBe("end_turn");
    });

    test("that is unknown cannot be opened", async () => {
      await fixture.session();
      const method = isFirst ? "session/load" : "session/resume";
      const params = { sessionId: "ses_nowhere", cwd: fixture.acp.dir, mcpServers: [] };
      expect((await fixture.peer.refused(method, params)).code).toBe(-32002);
    });

    test("is listed with its directory and first prompt", async () => {
      const session = await fixture.session();
      await session.prompt("say hello").ended;
      const { sessions } = await fixture.peer.request("session/list", { cwd: fixture.acp.dir });
      expect(sessions).toContainEqual({
        ...{ sessionId: session.id, cwd: session.cwd, title: "say hello", updatedAt: expect.any(String) },
      });
      expect(await fixture.peer.request("session/list", { cwd: "/nowhere" })).toEqual({ sessions: [] });
    });

    test("when closed, cancels and reports its runs first, and can be opened again", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const prompts = [session.prompt(`say one; call read_file ${g}`), session.prompt("say two")];
      await fixture.gates.reached(g);
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
      const again = await fixture.peer.open(session.id, session.cwd);
      expect((await again.prompt("say three").ended).stopReason).toBe("end_turn");
    });

    test("when deleted, is not listed and cannot be opened", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const live = session.prompt(`gate ${g}`);
      await fixture.gates.reached(g);
      const deleted = session.request("session/delete");
      expect((await live.ended).stopReason).toBe("cancelled");
      await deleted;
      expect(await listed()).not.toContain(session.id);
      const method = isFirst ? "session/load" : "session/resume";
      expect((await session.refused(method, { cwd: session.cwd, mcpServers: [] })).code).toBe(-32002);
    });
  });

  describe("an editor that disconnects", () => {
    test("stops nothing: when it returns it gets all updates, and the prompt is not repeated", async () => {
      const first = await fixture.connect();
      const session = await first.newSession(fixture.acp.dir);
      const g = fixture.gate();
      void session.prompt(`say one; gate ${g}; say two`).answer.catch(() => {});
      await fixture.gates.reached(g);
      await first.drop();
      fixture.gates.open(g);
      const second = await fixture.connect();
      const again = await second.open(session.id, session.cwd);
      await again.sees("two");
      expect(again.said).toBe("onetwo");
      expect(asked(again)).toHaveLength(1);
      expect(fixture.gates.count(g)).toBe(1);
      expect((await again.prompt("say three").ended).stopReason).toBe("end_turn");
      await second.drop();
    }, 30_000);

    test("and returns during its run can stop it", async () => {
      const first = await fixture.connect();
      const session = await first.newSession(fixture.acp.dir);
      const g = fixture.gate();
      void session.prompt(`call read_file ${g}`).answer.catch(() => {});
      await fixture.gates.reached(g);
      await first.drop();
      const again = await fixture.peer.open(session.id, session.cwd);
      const call = await again.call("read_file");
      await again.cancel();
      expect((await again.callEnd(call)).status).toBe(isFirst ? "failed" : "cancelled");
      expect((await again.prompt("say on").ended).stopReason).toBe("end_turn");
    }, 30_000);

    test("is asked its open question again when it returns", async () => {
      const first = await fixture.connect();
      const session = await first.newSession(fixture.acp.dir, "never");
      void session.prompt("approve write_file").answer.catch(() => {});
      await session.when((updates) => updates.find((one) => one.status === "pending"));
      await first.drop();
      fixture.peer.permits.set(session.id, "allow");
      const again = await fixture.peer.open(session.id, session.cwd);
      await again.sees("[write_file completed]");
    }, 30_000);
  });
}
