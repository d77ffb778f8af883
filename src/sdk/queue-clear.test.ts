// Clearing the queue in the tick of the prompts: what is live in that tick continues, what waits is withdrawn.
import { expect, test } from "vitest";
import { openBelay } from "./belay.ts";

test("G6: of the prompts of one tick, the live one continues and the waiting one is withdrawn", async () => {
  const belay = await openBelay({ agent: ({ prompt }) => prompt.text, store: ":memory:" });
  const session = await belay.createSession();
  const [first, second] = [session.prompt("first"), session.prompt("second")];
  const cleared = session.queue.clear();
  const later = session.prompt("later");
  expect(await cleared).toMatchObject({ kind: "withdrawn", runs: [{ runId: second.id }] });
  expect((await first.result()).text).toBe("first");
  expect(await second.outcome).toMatchObject({ kind: "cancelled" });
  expect((await later.result()).text).toBe("later");
  await belay.close();
});
