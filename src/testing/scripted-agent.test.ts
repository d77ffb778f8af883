import { expect, test } from "vitest";
import { openBelay } from "../sdk/belay.ts";
import { Gate } from "./gate.ts";
import { manualClock } from "./manual-clock.ts";
import { type Step, scriptedAgent } from "./scripted-agent.ts";

async function opened(...scripts: readonly (readonly Step[])[]) {
  const agent = scriptedAgent(...scripts);
  const clock = manualClock();
  const belay = await openBelay({ agent, store: ":memory:", clock });
  return { agent, clock, session: await belay.createSession() };
}

test("a script is played, and then completes", async () => {
  const { session } = await opened([
    { do: "say", text: "Looking. " },
    { do: "call", name: "search", input: "x", execute: () => 42 },
    { do: "say", text: "Found." },
  ]);
  const run = session.prompt("find x");
  expect(await run.outcome).toEqual({ kind: "completed" });
  expect(await run.text()).toBe("Looking. Found.");
});

test("a failing script fails its run", async () => {
  const { session } = await opened([{ do: "fail", message: "no model" }]);
  expect(await session.prompt("x").outcome).toEqual({ kind: "failed", code: "error", message: "no model" });
});

test("without a script the test drives the turn", async () => {
  const { agent, session } = await opened();
  const run = session.prompt("x");
  const turn = await agent.nextTurn();
  const call = turn.call("shell");
  await call.begun;
  call.complete("done");
  expect(await call.result).toMatchObject({ kind: "completed", value: "done" });
  turn.askAgain();
  (await agent.nextTurn()).complete("bye");
  expect(await run.outcome).toEqual({ kind: "completed" });
  expect(agent.turns).toHaveLength(2);
});

test("a wait ends with a cancel", async () => {
  const { agent, session } = await opened([{ do: "wait", for: new Gate() }]);
  const run = session.prompt("x");
  await run.accepted;
  while (agent.turns.length === 0) await new Promise(setImmediate);
  await run.cancel({ reason: "enough" });
  expect(await run.outcome).toEqual({ kind: "cancelled", reason: { kind: "user", note: "enough" } });
});

test("an agent that hangs is abandoned after the grace period, and reported", async () => {
  const { agent, clock, session } = await opened([{ do: "hang" }]);
  const run = session.prompt("x");
  await run.accepted;
  while (agent.turns.length === 0) await new Promise(setImmediate);
  await run.cancel();
  await clock.advance(1_500);
  expect(await run.outcome).toMatchObject({ kind: "cancelled", abandoned: ["turn"] });
});
