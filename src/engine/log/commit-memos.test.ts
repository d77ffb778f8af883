// Memos in a loaded session: how long they apply, and what happens to them when an answer of the store is lost.
import { describe, expect, test } from "vitest";
import { cancelSession, keyed, Writer } from "../../../test/fixtures/commit.ts";
import { ANSWERS_KEPT, MEMO_MS } from "../../core/limits.ts";

const naming = (...prompts: string[]) => ({ ...cancelSession, prompts }) as const;
const once = { key: "K", content: "c" };

describe("a memo of a loaded session", () => {
  test("applies as long as it is kept, and no longer", async () => {
    const writer = await new Writer().begin();
    await writer.submit(naming("a"));
    await writer.clock.advance(1);
    await writer.submit(naming("b"));
    await writer.submit({ ...cancelSession, once });
    await writer.clock.advance(MEMO_MS - 1);
    await writer.submit(keyed("run_a", "a"));
    await writer.submit(keyed("run_b", "b"));
    expect(writer.lane.decided.queue.map(({ id }) => id)).toEqual(["run_a"]);
    expect(await writer.submit({ ...cancelSession, once })).toMatchObject({ kind: "idle" });
    await writer.clock.advance(1);
    expect(await writer.submit({ ...cancelSession, once })).toMatchObject({ kind: "withdrawn" });
  });

  test("G7: is known although the store's answer was lost, and the batch was found in the log", async () => {
    const writer = await new Writer().begin("run_a");
    writer.store.plan("append", 1, { kind: "lose-answer" });
    await writer.submit({ ...cancelSession, once }).catch(() => {});
    await writer.clock.advance(50);
    for (let index = 0; index <= ANSWERS_KEPT; index += 1) {
      await writer.submit({ type: "set-mode", mode: `${index}`, once: { key: `${index}`, content: "c" } });
    }
    expect(await writer.submit(keyed("run_b", "b"))).toMatchObject({ kind: "accepted" });
    writer.covered.length = 0;
    expect(await writer.submit({ ...cancelSession, once })).toMatchObject({ runs: [{ runId: "run_a" }] });
    expect(writer.covered).toEqual([]);
    expect(writer.lane.decided.queue).toHaveLength(1);
  });
});
