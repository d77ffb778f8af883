// An example for users: a tool is safe to cancel if a cancel in the middle leaves nothing half done.
import { expect, test } from "vitest";
import type { LiveCall } from "../ports/agent.ts";
import { openBelay } from "../sdk/belay.ts";
import { scriptedAgent } from "./scripted-agent.ts";

/** The tool under test: copies its input one by one, and reports how far it got. */
async function copyAll(call: LiveCall, done: string[], each: () => Promise<void>): Promise<number> {
  for (const file of call.input as string[]) {
    call.signal.throwIfAborted();
    done.push(file);
    call.partial(done.length);
    await each();
  }
  return done.length;
}

test("my tool stops when its call is cancelled, and reports how far it got", async () => {
  const agent = scriptedAgent();
  const belay = await openBelay({ agent, store: ":memory:" });
  const session = await belay.createSession();
  const run = session.prompt("copy them");
  const turn = await agent.nextTurn();
  const done: string[] = [];
  const call = turn.call("copy", ["a", "b", "c"], (live) =>
    copyAll(live, done, async () => void (await belay.cancel(live.callId))),
  );
  expect(await call.result).toMatchObject({ kind: "cancelled", partial: 1 });
  expect(done).toEqual(["a"]);
  turn.complete();
  expect(await run.outcome).toEqual({ kind: "completed" });
});
