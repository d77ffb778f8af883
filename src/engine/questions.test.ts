import { expect, test } from "vitest";
import type { Turn } from "../ports.ts";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import { sequentialIds } from "../testing/sequential-ids.ts";
import { Engine } from "./engine.ts";

function house(agent: (turn: Turn) => Promise<undefined>): Engine {
  const clock = manualClock();
  return new Engine({
    ...{ store: new MemoryStore({ clock }), clock, ids: sequentialIds(), agent, hooks: {}, notify: () => {} },
    ...{ graceMs: 1_000, liveRunsMax: 9, resume: "resume", runLimitMs: undefined, tap: undefined, spawner: undefined },
  });
}

const asked = (text: string) => ({ prompt: { text }, delivery: "queue", key: undefined }) as const;

test("K10: of a question whose run was cancelled nothing is kept", async () => {
  const engine = house(async (turn) => void (await turn.ask({ text: "Which?", options: ["this", "that"] })));
  await engine.start();
  const { id } = await engine.create(undefined, {});
  const { runId, accepted } = engine.prompt(id, asked("ask"));
  await accepted;
  await settled();
  expect(engine.questions.size).toBe(1);
  await engine.cancel.run(runId, { kind: "user" });
  await settled();
  expect(await engine.outcome(runId)).toMatchObject({ kind: "cancelled" });
  expect(engine.questions.size).toBe(0);
});
