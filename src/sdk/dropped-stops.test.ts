// A stop button often drops the promise of its stop. When the stop fails, the program must not end.
import { expect, test } from "vitest";
import { openBelay } from "./belay.ts";

test("G33: a stop whose promise is dropped does not end the program when it is refused", async () => {
  const belay = await openBelay({ agent: () => "done", store: ":memory:" });
  const session = await belay.createSession();
  const run = session.prompt("hello");
  await run.outcome;
  await belay.close();
  const unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  void belay.cancel(run.id);
  void belay.cancel("call_none.1");
  void belay.cancelAll();
  void belay.cancelPrompt("key");
  void session.cancel();
  void session.cancelCall("call_none.1");
  void session.cancelPrompt("key");
  void session.close();
  void session.queue.withdraw(run.id);
  void session.queue.clear();
  void run.cancel();
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", note);
  expect(unhandled).toEqual([]);
});
