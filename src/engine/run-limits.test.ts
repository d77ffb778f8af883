import { expect, test } from "vitest";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { faultyStore } from "../testing/faulty-store.ts";
import { Gate } from "../testing/gate.ts";
import { manualClock, settled } from "../testing/manual-clock.ts";
import { sequentialIds } from "../testing/sequential-ids.ts";
import { Engine } from "./engine.ts";

test("G34: the time of a run that was let go of does not end it when it is taken up again", async () => {
  const clock = manualClock();
  const store = faultyStore(new MemoryStore({ clock }));
  const engine = new Engine({
    ...{ store, clock, ids: sequentialIds(), agent: () => new Promise<undefined>(() => {}), hooks: {} },
    ...{ notify: () => {}, graceMs: 1_000, liveRunsMax: 1, resume: "resume", tap: undefined, spawner: undefined },
    runLimitMs: 7_500,
  });
  await engine.start();
  const { id } = await engine.create(undefined, {});
  await engine.prompt(id, { prompt: { text: "long" }, delivery: "queue", key: undefined }).accepted;
  // The store says nothing for so long that the worker lets go; then all is well again.
  const well = new Gate();
  for (const verb of ["renew", "claim", "load"] as const) store.always(verb, { kind: "delay", until: well });
  await clock.advance(8_000);
  store.heal();
  well.open();
  await settled();
  await clock.advance(3_000);
  const events = (await store.read(id, { after: 0, limit: 100 })).events.map(({ type }) => type);
  expect(events).toContain("run.recovered");
  expect(events).not.toContain("run.cancel_requested");
  await clock.advance(9_500);
  expect(engine.lanes.peek(id)?.durable.live).toBeUndefined();
});
