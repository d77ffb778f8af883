import { expect, test } from "vitest";
import { asked, type EngineHouse, engineHouse } from "../../test/engine-house.ts";
import { IDLE_LANES_MAX } from "../core/limits.ts";
import type { Turn } from "../ports.ts";
import { Gate } from "../testing/gate.ts";
import { settled } from "../testing/manual-clock.ts";
import type { Engine } from "./engine.ts";
import { shutDown } from "./shutdown.ts";

function house(begun: (turn: Turn, engine: Engine) => void = () => {}) {
  const agent = (turn: Turn): Promise<undefined> => {
    begun(turn, made.engine);
    return new Promise(() => {});
  };
  const made: EngineHouse = engineHouse({ agent });
  return made;
}

test("a lane that was let go of while it was loaded does not give the lease of its successor away", async () => {
  const { store, engine } = house();
  await engine.start();
  const { id } = await engine.create(undefined, {});
  const late = new Gate();
  engine.commit.fence(engine.lanes.get(id));
  // It is let go of while it waits for its lease; the next one has it by the time that it comes.
  store.plan("claim", 1, { kind: "delay-answer", until: late });
  const lost = engine.prompt(id, asked("lost")).accepted.catch(() => "lost");
  await settled();
  engine.commit.fence(engine.lanes.get(id));
  expect(await lost).toBe("lost");
  await engine.loaded(id);
  late.open();
  await settled();
  await expect(engine.prompt(id, asked("next")).accepted).resolves.toMatchObject({ kind: "accepted" });
});

test("G28: a cancel from within the beginning of a turn does not wait for a key that is looked up", async () => {
  let aborted: boolean | undefined;
  const { clock, store, engine } = house((turn, of) => {
    void of.cancel.run(turn.runId, { kind: "user" });
    aborted = turn.signal.aborted;
  });
  await engine.start();
  const { id } = await engine.create(undefined, {});
  store.plan("append", 1, { kind: "lose-answer" });
  engine.prompt(id, asked("first")).accepted.catch(() => undefined);
  await settled();
  // Nobody knows yet whether the first one was recorded; the key of the second one takes its time.
  store.always("run", { kind: "delay", until: new Gate() });
  void engine.prompt(id, asked("second", "k"));
  await clock.advance(100);
  expect(aborted).toBe(true);
});

test("G26: a lane that is lost while the house shuts down does not keep the house from closing", async () => {
  const { clock, store, engine } = house();
  await engine.start();
  const { id } = await engine.create(undefined, {});
  await engine.prompt(id, asked("live")).accepted;
  // Another worker takes it over: what is written from here on is refused.
  await store.release(id, engine.worker);
  const closed = shutDown(engine, "park", new Promise(() => {}));
  let how = "";
  closed.then(
    () => {
      how = "closed";
    },
    (error: unknown) => {
      how = String(error);
    },
  );
  await clock.advance(3_000);
  expect(how).toBe("closed");
  expect(engine.phase).toBe("closed");
});

test("a prompt that comes to the oldest idle session while another becomes idle is run, not forgotten", async () => {
  const begun: string[] = [];
  const { store, engine } = house((turn) => begun.push(turn.runId));
  await engine.start();
  const { id } = await engine.create(undefined, {});
  for (let others = 1; others < IDLE_LANES_MAX; others += 1) await engine.create(undefined, {});
  const late = new Gate();
  store.plan("append", 1, { kind: "delay-answer", until: late });
  const { runId, accepted } = engine.prompt(id, asked("one"));
  await settled();
  // One idle session too many: the oldest of them has something on its way to the store.
  await engine.create(undefined, {});
  late.open();
  await accepted;
  await settled();
  expect(begun).toEqual([runId]);
});

test("idle lanes beyond the maximum are let go, oldest first, and none that something was asked of", async () => {
  const { store, engine } = house();
  await engine.start();
  const { id: busy } = await engine.create(undefined, {});
  const { id: next } = await engine.create(undefined, {});
  for (let others = 2; others < IDLE_LANES_MAX; others += 1) await engine.create(undefined, {});
  const late = new Gate();
  // Its key is looked up: nothing is decided yet, and nothing is on its way.
  store.plan("run", 1, { kind: "delay", until: late });
  const { accepted } = engine.prompt(busy, asked("one", "key"));
  await engine.create(undefined, {});
  expect(engine.lanes.peek(busy)?.phase).toBe("ready");
  expect(engine.lanes.peek(next)).toBeUndefined();
  late.open();
  await expect(accepted).resolves.toMatchObject({ kind: "accepted" });
});
