// A bridge to a running server: the same lines, with a client and real sockets in between.
import { afterEach, expect, test } from "vitest";
import { connectBelay } from "../../src/client/belay-client.ts";
import { openBelay } from "../../src/sdk/belay.ts";
import { scriptedAgent } from "../../src/testing/scripted-agent.ts";
import { InMemoryHost } from "../fixtures/bridge-host.ts";
import { realServer } from "../fixtures/real-server.ts";

const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function openFarBridge() {
  const agent = scriptedAgent();
  const belay = await openBelay({ store: ":memory:", graceMs: 50, agent });
  open.push(() => belay.close({ mode: "cancel" }));
  const server = await realServer(belay);
  open.push(() => server.close());
  const client = await connectBelay({ socket: server.socket });
  open.push(() => client.close());
  const host = new InMemoryHost({ control: client });
  return { belay, agent, host };
}

test("G7: a cancel covers the prompt in the line before it, and not the one in the line after it", async () => {
  const { host, agent } = await openFarBridge();
  const sessionId = await host.newSession();
  host.send(
    { id: 1, method: "session/prompt", params: { sessionId, prompt: "before" } },
    { id: 2, method: "session/cancel", params: { sessionId } },
    { id: 3, method: "session/prompt", params: { sessionId, prompt: "after" } },
  );
  // Over a network the first may have begun when the cancel arrives.
  for (;;) {
    const turn = await agent.nextTurn();
    if (turn.given.prompt.text === "before") void turn.cancelled.then(() => turn.endCancelled());
    else {
      turn.complete("on");
      break;
    }
  }
  expect((await host.answer(1)).result).toMatchObject({ outcome: { kind: "cancelled" } });
  expect((await host.answer(2)).result).toMatchObject({ status: "cancelled" });
  expect((await host.answer(3)).result).toMatchObject({ outcome: { kind: "completed" }, text: "on" });
});

test("a call is stopped, a session is followed, and the answer follows the last event", async () => {
  const { host, agent } = await openFarBridge();
  const sessionId = await host.newSession();
  await host.ask("session/subscribe", { sessionId, deltas: "with" });
  host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "go" } });
  const turn = await agent.nextTurn();
  const call = turn.call("shell");
  const live = await call.begun;
  live.signal.addEventListener("abort", () => call.fail(live.signal.reason));
  const stop = (params: object) => host.ask("session/cancel_tool_call", { sessionId, ...params });
  expect((await stop({ callId: live.callId })).result).toMatchObject({ status: "cancelled", tool: "shell" });
  expect((await stop({ callId: live.callId })).result).toMatchObject({ status: "already_cancelled", tool: "shell" });
  expect((await stop({ callId: "call_none.1" })).result).toMatchObject({ status: "not_found", tool: null });
  const other = await host.newSession();
  const elsewhere = await host.ask("session/cancel_tool_call", { sessionId: other, callId: live.callId });
  expect(elsewhere.result).toMatchObject({ status: "not_found" });
  turn.complete("done");
  expect((await host.answer(1)).result).toMatchObject({ text: "done" });
  const kinds = host.lines.map((line) => (line.params?.event as { type?: string } | undefined)?.type ?? line.id);
  expect(kinds.indexOf("run.settled")).toBeGreaterThan(-1);
  expect(kinds.indexOf("run.settled")).toBeLessThan(kinds.indexOf(1));
});

test("when the host is gone, only its own runs are cancelled at the server", async () => {
  const { host, agent, belay } = await openFarBridge();
  const others = (await belay.createSession()).prompt("of another client");
  const theirs = await agent.nextTurn();
  const sessionId = await host.newSession();
  host.send({ id: 1, method: "session/prompt", params: { sessionId, prompt: "its own" } });
  const own = await agent.nextTurn();
  void own.cancelled.then(() => own.endCancelled());
  host.input.end();
  await host.over;
  const [row] = await belay.session(sessionId).runs();
  const run = await belay.run(row?.id ?? "");
  expect(await run.outcome).toMatchObject({ kind: "cancelled", reason: { kind: "policy" } });
  expect(theirs.given.signal.aborted).toBe(false);
  theirs.complete("still here");
  expect(await others.outcome).toEqual({ kind: "completed" });
});
