// Stops of one call, and permission requests; on any transport, in either version.
import { describe, expect, test } from "vitest";
import type { SessionFixture } from "./session-fixture.ts";
import { belayOf, fieldsOf, textOf } from "./transcript.ts";

export function callTests(fixture: SessionFixture): void {
  const isFirst = fixture.version === 1;
  const method = isFirst ? "_belay/tool_call/cancel" : "tool_call/cancel";
  const stopped = isFirst ? "failed" : "cancelled";

  describe("a stop of one call", () => {
    test("ends the call and not its run", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const asked = session.prompt(`call read_file ${g}; say on`);
      await fixture.gates.reached(g);
      const toolCallId = await session.call("read_file");
      expect(await session.request(method, { toolCallId })).toEqual({});
      const end = await session.callEnd(toolCallId);
      expect([end.status, belayOf(end).status]).toEqual([stopped, "cancelled"]);
      expect((await asked.ended).stopReason).toBe("end_turn");
      expect(session.said).toBe("[read_file cancelled]on");
      expect((await session.refused(method, { toolCallId })).code).toBe(-32602);
      expect((await session.refused(method, { toolCallId: "call_nowhere" })).code).toBe(-32602);
    });

    test("stops no other call of the same run", async () => {
      const session = await fixture.session();
      const [g, h] = [fixture.gate(), fixture.gate()];
      const asked = session.prompt(`call read_file ${g}; call search ${h}`);
      await fixture.gates.reached(g);
      await session.request(method, { toolCallId: await session.call("read_file") });
      await fixture.gates.reached(h);
      fixture.gates.open(h);
      await asked.ended;
      expect(session.said).toBe("[read_file cancelled][search completed]");
    });

    test.each(["session/cancel_tool_call", "_belay/tool_call/cancel"])("works as a notification: %s", async (name) => {
      const session = await fixture.session();
      const g = fixture.gate();
      const asked = session.prompt(`call read_file ${g}; say on`);
      await fixture.gates.reached(g);
      const toolCallId = await session.call("read_file");
      await session.peer.notify(name, { sessionId: session.id, toolCallId, reason: "x".repeat(5_000) });
      expect((await asked.ended).stopReason).toBe("end_turn");
      expect(session.said).toBe("[read_file cancelled]on");
    });

    test("works by its alias, with the alias's statuses", async () => {
      const session = await fixture.session();
      const g = fixture.gate();
      const asked = session.prompt(`call read_file ${g}`);
      await fixture.gates.reached(g);
      const callId = await session.call("read_file");
      const alias = (call_id: string, reason = "enough") =>
        session.request("session/cancel_tool_call", { call_id, reason, timeout_ms: 600_000 });
      expect(await alias(callId)).toMatchObject({
        ...{ status: "cancelled", callId, call_id: callId, tool: "read_file", reason: "enough" },
        receipt: { kind: "stopping", first: true },
      });
      await asked.ended;
      expect(await alias(callId, "again")).toMatchObject({
        ...{ status: "already_cancelled", reason: "enough", receipt: { kind: "settled" } },
      });
      expect(await alias("call_nowhere")).toMatchObject({ status: "not_found" });
      expect((await session.refused("session/cancel_tool_call", {})).code).toBe(-32602);
    });

    test("during a permission request withdraws the question, and the run continues", async () => {
      const session = await fixture.session("never");
      const asked = session.prompt("approve write_file; say on");
      const toolCallId = await session.call("write_file");
      const { transcript } = fixture.peer;
      const question = await transcript.when((said) =>
        said.find(
          ({ message }) => message.method === "session/request_permission" && message.params?.sessionId === session.id,
        ),
      );
      await session.request(method, { toolCallId });
      await transcript.when((said) =>
        said.find(
          ({ message }) => message.method === "$/cancel_request" && message.params?.requestId === question.message.id,
        ),
      );
      expect((await asked.ended).stopReason).toBe("end_turn");
      expect(session.said).toBe("[write_file cancelled]on");
    });
  });

  if (!isFirst) {
    describe("calls in version 2", () => {
      test("a call is marked as stoppable until it has ended", async () => {
        const session = await fixture.session();
        const g = fixture.gate();
        const asked = session.prompt(`call read_file ${g}`);
        await fixture.gates.reached(g);
        const id = await session.call("read_file");
        expect(session.updates.find((one) => one.toolCallId === id)?.capabilities).toEqual({ cancel: {} });
        fixture.gates.open(g);
        await asked.ended;
        expect((await session.callEnd(id)).capabilities).toBeNull();
      });

      test("a command is a terminal that can be stopped alone", async () => {
        const session = await fixture.session();
        const asked = session.prompt("sh echo up && exec sleep 86399; say on");
        const terminal = await session.when((updates) =>
          updates.find((one) => textOf(fieldsOf(one.output).data) === "dXAK"),
        );
        const { terminalId } = terminal;
        expect(await session.request("terminal/cancel", { terminalId })).toEqual({});
        await session.when((updates) => updates.find((one) => one.terminalId === terminalId && one.exitStatus != null));
        expect((await asked.ended).stopReason).toBe("end_turn");
        expect((await session.refused("terminal/cancel", { terminalId })).code).toBe(-32602);
        expect((await session.refused("terminal/cancel", { terminalId: "proc_nowhere" })).code).toBe(-32602);
      });
    });
  }

  describe("a permission", () => {
    test.each([
      ["allow", "completed"],
      ["deny", "failed"],
      ["dismiss", "failed"],
    ] as const)("answered with %s: the call is %s, and the run continues", async (permits, kind) => {
      const session = await fixture.session(permits);
      const { stopReason } = await session.prompt("approve write_file; say on").ended;
      expect(stopReason).toBe("end_turn");
      expect(session.said).toBe(`[write_file ${kind}]on`);
      const statuses = session.updates.filter((one) => one.status !== undefined).map((one) => one.status);
      expect(statuses).toContain("pending");
      expect(statuses.at(-1)).toBe(kind);
    });

    test("that is remembered is requested once", async () => {
      const session = await fixture.session("allow-session");
      await session.prompt("approve write_file; approve write_file").ended;
      await session.prompt("approve write_file").ended;
      const asked = fixture.peer.transcript.said.filter(
        ({ message }) => message.method === "session/request_permission" && message.params?.sessionId === session.id,
      );
      expect(asked).toHaveLength(1);
      expect(session.said).toBe("[write_file completed]".repeat(3));
    });

    test("for a question with options selects one of them", async () => {
      const session = await fixture.session("option-1");
      await session.prompt("ask").ended;
      expect(session.said).toBe("[green]");
    });
  });
}
