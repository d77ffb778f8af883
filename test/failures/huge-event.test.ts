// D11: a hundred mebibytes where a few words were meant. None of it goes into the log, and whoever sent it is told.
import { expect, test } from "vitest";
import { CALL_BYTES_MAX, TURN_CHARS_MAX } from "../../src/core/limits.ts";
import { verifyAtRest } from "../../src/core/read/verify.ts";
import { logOf, openTestBelay } from "../fixtures/belay.ts";

const HUGE = "x".repeat(100 * 1024 * 1024);
/** An event has a few names and ids besides the one thing that may be large. */
const AROUND_CHARS = 2_048;

test("D11: whatever an agent or a tool hands back, no event is larger than its limit, and the run has its end", {
  timeout: 60_000,
  meta: { id: "G33/event-size-bounded" },
}, async () => {
  const { belay } = await openTestBelay({
    result: async (turn) => told(await turn.call("big", null, () => HUGE)),
    partial: async (turn) => told(await turn.call("big", null, (call) => call.partial(HUGE))),
    throws: async (turn) =>
      told(
        await turn.call("big", null, () => {
          throw new Error(HUGE);
        }),
      ),
    deep: async (turn) =>
      told(await turn.call("big", null, () => JSON.parse(`${"[".repeat(100_000)}${"]".repeat(100_000)}`))),
    input: (turn) => turn.call("big", HUGE, () => 1).then(told, (error) => `refused: ${error.code}`),
    text: () => HUGE,
    emits: (turn) => {
      turn.emit(HUGE);
      return undefined;
    },
    fails: () => {
      throw new Error(HUGE);
    },
  });
  const session = await belay.createSession();
  const end = async (prompt: string): Promise<string> => {
    const run = session.prompt(prompt);
    const { kind } = await run.outcome;
    return `${kind}: ${(await run.text()).slice(0, 60)}`;
  };
  for (const prompt of ["result", "partial", "deep"]) expect(await end(prompt)).toBe("completed: completed");
  expect(await end("throws")).toMatch(/^completed: failed/);
  expect(await end("input")).toBe("completed: refused: invalid");
  expect(await end("text")).toMatch(/^completed: xxx/);
  expect(await end("emits")).toMatch(/^completed: xxx/);
  expect(await end("fails")).toBe("failed: ");
  // One that is as large as it may be is kept whole.
  const most = "y".repeat(CALL_BYTES_MAX - 2);
  const fits = await openTestBelay({ fits: async (turn) => told(await turn.call("big", null, () => most)) });
  expect(await (await fits.belay.createSession()).prompt("fits").text()).toBe("completed");
  const log = await logOf(session);
  const largest = Math.max(...log.map((event) => JSON.stringify(event).length));
  expect(largest).toBeLessThan(Math.max(CALL_BYTES_MAX, TURN_CHARS_MAX) + AROUND_CHARS);
  expect(verifyAtRest(log)).toEqual([]);
  await Promise.all([belay.close({ mode: "cancel" }), fits.belay.close({ mode: "cancel" })]);
});

const told = ({ kind }: { readonly kind: string }): string => kind;
