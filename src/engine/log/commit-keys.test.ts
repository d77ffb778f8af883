// Idempotency keys of prompts: nothing is looked up before the decision. The store reports keys that are taken, and the
// batch is decided again with them.
import { describe, expect, test } from "vitest";
import {
  accept,
  cancel,
  cancelSession,
  edit,
  keyed,
  settleTurn,
  Writer,
  waiting,
  watch,
} from "../../../test/fixtures/commit.ts";
import type { Command } from "../../core/model/command.ts";
import type { KeyedRun } from "../../core/model/rows.ts";
import type { Appended } from "../../ports/store.ts";
import { Gate } from "../../testing/gate.ts";
import { settled } from "../../testing/manual-clock.ts";

/** A writer with a session in whose log runs have ended with these keys. */
async function afterRuns(...keys: readonly string[]): Promise<Writer> {
  const writer = await new Writer().begin();
  for (const [index, key] of keys.entries()) {
    const runId = `run_old${index + 1}` as const;
    await writer.submit(keyed(runId, key));
    await writer.submit(cancel(runId));
  }
  writer.reported.length = 0;
  writer.covered.length = 0;
  return writer;
}

/** The next append reports these keys as taken; later ones succeed. */
function takenOnce({ log }: Writer, ...runs: readonly KeyedRun[]): void {
  const append = log.append.bind(log);
  log.append = () => {
    log.append = append;
    return Promise.resolve<Appended>({ kind: "taken", runs });
  };
}

describe("a prompt whose key has a run that only the store remembers", () => {
  test("is decided in its tick as a new one, and answered as a repetition; nothing is written", async () => {
    const writer = await afterRuns("k");
    const answers: unknown[] = [];
    const head = writer.lane.durable.head;
    const repeated = writer.submit(keyed("run_1", "k"), (answer) => void answers.push(answer));
    expect(answers).toMatchObject([{ kind: "accepted", runId: "run_1", repeated: false }]);
    expect(await repeated).toEqual({
      ...{ kind: "accepted", runId: "run_old1", seq: 2, joined: "queue", ahead: 0, repeated: true },
    });
    expect(answers).toHaveLength(2);
    expect([writer.lane.durable.head, writer.lane.decided.head]).toEqual([head, head]);
    expect(writer.reported).toEqual(["decided accept", "caught up, queue: empty", "rested"]);
  });

  test("is refused with `conflict` for another prompt, and the rest of its batch is recorded", async () => {
    const writer = await afterRuns("k");
    const conflict = writer.submit(keyed("run_1", "k", "something else"));
    const fresh = writer.submit(accept("run_2"));
    expect(await conflict).toMatchObject({ kind: "refused", code: "conflict" });
    expect(await fresh).toMatchObject({ kind: "accepted", runId: "run_2", ahead: 0 });
    expect(waiting(writer.lane.durable)).toBe("run_2");
  });

  test("is one of several in a batch: all repeat after one more append, and new keys are recorded", async () => {
    const writer = await afterRuns("k1", "k2");
    const appends = writer.store.calls("append");
    const answers = await Promise.all([
      writer.submit(keyed("run_1", "k1")),
      writer.submit(keyed("run_2", "new")),
      writer.submit(keyed("run_3", "k2")),
      writer.submit(keyed("run_4", "k1", "something else")),
      writer.submit(accept("run_5")),
    ]);
    expect(answers).toMatchObject([
      { runId: "run_old1", repeated: true },
      { runId: "run_2", repeated: false, ahead: 0 },
      { runId: "run_old2", repeated: true },
      { kind: "refused", code: "conflict" },
      { runId: "run_5", repeated: false, ahead: 1 },
    ]);
    expect(writer.store.calls("append")).toBe(appends + 2);
    expect(waiting(writer.lane.durable)).toBe("run_2 run_5");
  });

  test("delays nothing: commands decided while its batch was in flight are decided again with it", async () => {
    const writer = await afterRuns("k1", "k2");
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "delay", until: late });
    const first = writer.submit(keyed("run_1", "k1"));
    await settled();
    const others = [writer.submit(accept("run_2")), writer.submit(keyed("run_3", "k2"))];
    expect(waiting(writer.lane.decided)).toBe("run_1 run_2 run_3");
    late.open();
    expect(await first).toMatchObject({ runId: "run_old1", repeated: true });
    expect(await Promise.all(others)).toMatchObject([{ runId: "run_2", ahead: 0 }, { runId: "run_old2" }]);
    expect(waiting(writer.lane.durable)).toBe("run_2");
  });

  test("can be decided again because another writer was faster, and is still a repetition", async () => {
    const writer = await afterRuns("k");
    await new Writer(writer).begin("run_9");
    expect(await writer.submit(keyed("run_1", "k"))).toMatchObject({ runId: "run_old1", repeated: true });
    expect(waiting(writer.lane.durable)).toBe("run_9");
  });
});

describe("a stop after a prompt whose key is taken", () => {
  test("covers what was before it and nothing after it, and is carried out once, in its tick", async () => {
    const writer = await afterRuns("k");
    const submitted = [writer.submit(accept("run_2")), writer.submit(keyed("run_1", "k"))];
    const stop = writer.submit(cancelSession);
    expect(writer.covered).toEqual([{ runs: ["run_2", "run_1"], work: [], processes: [] }]);
    const later = writer.submit(accept("run_3"));
    expect(await stop).toEqual({ kind: "withdrawn", runs: [{ runId: "run_2", receipt: { kind: "withdrawn" } }] });
    expect(await Promise.all(submitted)).toMatchObject([{ runId: "run_2" }, { runId: "run_old1", repeated: true }]);
    expect(await later).toMatchObject({ kind: "accepted", ahead: 0 });
    expect(writer.covered).toHaveLength(1);
    expect(waiting(writer.lane.durable)).toBe("run_3");
  });

  test("covers the same when it is received while the batch is in flight", async () => {
    const writer = await afterRuns("k");
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "delay", until: late });
    writer.submit(keyed("run_1", "k"));
    writer.submit(accept("run_2"));
    await settled();
    const stop = writer.submit(cancelSession);
    writer.submit(accept("run_3"));
    late.open();
    expect(await stop).toMatchObject({ runs: [{ runId: "run_2" }] });
    expect(waiting(writer.lane.durable)).toBe("run_3");
  });

  test("of that prompt alone withdraws nothing, and is answered `unknown`: that run has ended", async () => {
    const writer = await afterRuns("k");
    const repeated = writer.submit(keyed("run_1", "k"));
    const stops = [
      writer.submit(cancel("run_1")),
      writer.submit({ type: "cancel-key", key: "k", reason: { kind: "user" } }),
    ];
    expect(await repeated).toMatchObject({ runId: "run_old1" });
    expect(await Promise.all(stops)).toEqual([{ kind: "unknown" }, { kind: "unknown" }]);
  });
});

describe("a command with a provisional run id applies to the earlier run:", () => {
  const earlier = { key: "k", runId: "run_1", acceptedAt: 2, content: "k" } as const;
  const at = "run_2";
  const commands: readonly (readonly [Command["type"], Command, unknown])[] = [
    ["cancel-run", cancel(at), { kind: "withdrawn" }],
    ["edit", edit(at), { kind: "changed" }],
    ["move", { type: "move", runId: at, to: "back" }, { kind: "changed" }],
    ["move", { type: "move", runId: "run_0", to: { before: at } }, { kind: "changed" }],
    ["withdraw", { type: "withdraw", runId: at, reason: { kind: "user" } }, { kind: "changed" }],
  ];
  test.each(commands)("%s %j", async (_, command, answer) => {
    const direct = await new Writer().begin("run_1", "run_3", "run_0");
    const aliased = await new Writer().begin("run_1", "run_3", "run_0");
    takenOnce(aliased, earlier);
    const repeated = aliased.submit(keyed(at, "k"));
    const named = JSON.parse(JSON.stringify(command).replaceAll(at, "run_1")) as Command;
    expect(await aliased.submit(command)).toMatchObject(answer as object);
    expect(await repeated).toMatchObject({ runId: "run_1", repeated: true });
    await direct.submit(named);
    // As if it had named the earlier run from the start.
    expect(aliased.lane.durable).toEqual(direct.lane.durable);
  });

  test("steer", async () => {
    const writer = await new Writer().begin("run_0", "run_1", "run_3");
    await writer.submit({ type: "start" });
    takenOnce(writer, { ...earlier, acceptedAt: 3 });
    writer.submit(keyed(at, "k"));
    expect(await writer.submit({ type: "steer", runId: at })).toMatchObject({ kind: "changed" });
    expect(writer.lane.durable.steers.map(({ id }) => id)).toEqual(["run_1"]);
    expect(waiting(writer.lane.durable)).toBe("run_3");
  });

  test("even if it was received after the batch was sent", async () => {
    const writer = await new Writer().begin("run_1");
    const late = new Gate();
    takenOnce(writer, earlier);
    writer.store.plan("append", 1, { kind: "delay", until: late });
    writer.submit(keyed(at, "k"));
    await settled();
    const stop = watch(writer.submit(cancel(at)));
    late.open();
    await settled();
    expect(stop).toEqual({ is: "answered", value: { kind: "withdrawn" } });
    expect(waiting(writer.lane.durable)).toBe("");
  });

  test("not if the prompts differ: a refused prompt stops no other run", async () => {
    const writer = await new Writer().begin("run_1");
    takenOnce(writer, { ...earlier, content: "something else" });
    const conflict = writer.submit(keyed(at, "k"));
    expect(await writer.submit(cancel(at))).toEqual({ kind: "unknown" });
    expect(await conflict).toMatchObject({ kind: "refused", code: "conflict" });
    expect(waiting(writer.lane.durable)).toBe("run_1");
  });
});

describe("a key that belongs to a prompt that is not durable yet", () => {
  test("makes the second prompt a repetition, even if the first was withdrawn in between", async () => {
    const writer = await new Writer().begin();
    const [first, stop, again, other] = await Promise.all([
      writer.submit(keyed("run_1", "k")),
      writer.submit(cancel("run_1")),
      writer.submit(keyed("run_2", "k")),
      writer.submit(keyed("run_3", "k", "something else")),
    ]);
    expect([first, stop]).toMatchObject([{ runId: "run_1", seq: 2 }, { kind: "withdrawn" }]);
    expect(again).toMatchObject({ kind: "accepted", runId: "run_1", seq: 2, repeated: true });
    expect(other).toMatchObject({ kind: "refused", code: "conflict" });
    expect(writer.sent).toHaveLength(2);
  });

  test("is known while that prompt is in flight and its run has ended in memory", async () => {
    const writer = await new Writer().begin();
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "delay", until: late });
    const first = writer.submit(keyed("run_1", "k"));
    writer.submit({ type: "start" });
    await settled();
    writer.submit(settleTurn);
    expect(writer.lane.decided.live).toBeUndefined();
    const again = writer.submit(keyed("run_2", "k"));
    late.open();
    expect(await first).toMatchObject({ runId: "run_1", repeated: false });
    expect(await again).toMatchObject({ runId: "run_1", repeated: true, seq: 2 });
    expect((await writer.types()).filter((type) => type === "run.accepted")).toHaveLength(1);
  });
});
