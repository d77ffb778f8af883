// The only writer of the log: when a command is decided, what is written, and when its caller is answered.
import { describe, expect, test } from "vitest";
import {
  accept,
  cancel,
  cancelSession,
  changesNothing,
  edit,
  readyLane,
  settleTurn,
  Writer,
  waiting,
  watch,
} from "../../../test/fixtures/commit.ts";
import { COMMIT_ATTEMPTS_MAX, SNAPSHOT_EVENTS } from "../../core/limits.ts";
import type { CommandOf } from "../../core/model/command.ts";
import type { Appended } from "../../ports/store.ts";
import { Gate } from "../../testing/gate.ts";
import { settled } from "../../testing/manual-clock.ts";

const MOVED_AWAY = { code: "unavailable", message: "Session ses_1 is driven by another worker now." };

describe("a command", () => {
  test("is decided in the tick in which it is received, and not answered before it is durable", async () => {
    const writer = await new Writer().begin();
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "delay-answer", until: late });
    const answers: unknown[] = [];
    const first = watch(writer.submit(accept("run_1"), (answer) => void answers.push(answer)));
    expect(answers).toMatchObject([{ kind: "accepted", runId: "run_1" }]);
    expect([waiting(writer.lane.decided), waiting(writer.lane.durable)]).toEqual(["run_1", ""]);
    expect(writer.reported).toEqual(["decided accept"]);
    await settled();
    expect(first.is).toBe("waiting");
    late.open();
    await settled();
    expect(first.is).toBe("answered");
    expect(waiting(writer.lane.durable)).toBe("run_1");
  });

  test("is decided at once while a batch is in flight: a stop covers what is not durable yet", async () => {
    const writer = await new Writer().begin();
    writer.store.plan("append", 1, { kind: "delay-answer", until: new Gate() });
    writer.submit(accept("run_1"));
    await settled();
    writer.submit(accept("run_2"));
    writer.submit(cancelSession);
    expect(writer.covered).toEqual([{ runs: ["run_1", "run_2"], work: [], processes: [] }]);
  });

  test("shares its batch with the others of its tick, in the order in which they were received", async () => {
    const writer = new Writer();
    const answers = await Promise.all([
      writer.submit({ type: "create" }),
      writer.submit(accept("run_1")),
      writer.submit(accept("run_2")),
    ]);
    expect(answers).toMatchObject([{ kind: "created" }, { seq: 2, ahead: 0 }, { seq: 3, ahead: 1 }]);
    expect(writer.store.calls("append")).toBe(1);
    expect(writer.reported).toEqual([
      ...["decided create", "decided accept", "decided accept"],
      ...["recorded session.created run.accepted run.accepted", "rested"],
    ]);
  });

  test("that is received while a batch is in flight is in the next one: there is never more than one", async () => {
    const writer = await new Writer().begin();
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "delay-answer", until: late });
    const first = watch(writer.submit(accept("run_1")));
    await settled();
    const others = [watch(writer.submit(accept("run_2"))), watch(writer.submit(changesNothing))];
    await settled();
    expect([first.is, ...others.map(({ is }) => is)]).toEqual(["waiting", "waiting", "waiting"]);
    expect(writer.store.calls("append")).toBe(2);
    late.open();
    await settled();
    expect([first.is, ...others.map(({ is }) => is)]).toEqual(["answered", "answered", "answered"]);
    expect(writer.store.calls("append")).toBe(3);
    expect(waiting(writer.lane.durable)).toBe("run_1 run_2");
  });

  test("that changes nothing is not written and has no consequences", async () => {
    const writer = await new Writer().begin();
    await Promise.all([writer.submit(changesNothing), writer.submit(changesNothing)]);
    expect(writer.store.calls("append")).toBe(1);
    expect(writer.reported).toEqual(["rested"]);
  });

  test("that contradicts the state is rejected and reported as a bug, and the next one is decided", async () => {
    const writer = await new Writer().begin();
    const impossible = writer.submit({ ...changesNothing, type: "impossible" } as unknown as typeof changesNothing);
    const next = writer.submit(accept("run_1"));
    await expect(impossible).rejects.toMatchObject({ code: "internal" });
    expect(await next).toMatchObject({ kind: "accepted" });
    expect(writer.notices).toMatchObject([{ type: "bug", session: "ses_1", error: expect.any(TypeError) }]);
  });

  test("that is received while its session is loaded is decided after that, before anything begins", async () => {
    const writer = new Writer();
    writer.lane.phase = "loading";
    const received = [writer.submit({ type: "create" }), writer.submit(accept("run_1")), writer.submit(cancelSession)];
    const barrier = writer.commit.barrier(writer.lane);
    await settled();
    expect(writer.reported).toEqual([]);
    writer.lane.phase = "ready";
    writer.commit.loaded(writer.lane);
    expect(writer.reported).toEqual(["decided create", "decided accept", "decided cancel-session"]);
    expect(await Promise.all(received)).toMatchObject([{ kind: "created" }, { ahead: 0 }, { kind: "withdrawn" }]);
    await barrier;
    expect(writer.store.calls("append")).toBe(1);
  });
});

describe("a stop", () => {
  test("is reported with what it covers in the tick of its decision", async () => {
    const writer = await new Writer().begin("run_1");
    await writer.submit({ type: "start" });
    const late = writer.submit(cancel("run_1"));
    expect(writer.covered).toEqual([{ runs: ["run_1"], work: ["turn_1.1"], processes: [] }]);
    await late;
  });

  test("that changes nothing is reported as well: it may reach work that is not stopped yet", async () => {
    const writer = await new Writer().begin("run_1");
    await writer.submit({ type: "start" });
    await Promise.all([writer.submit(cancel("run_1")), writer.submit(cancel("run_1"))]);
    expect(writer.covered).toHaveLength(2);
    expect(writer.covered[0]).toEqual(writer.covered[1]);
  });

  test("that repeats a request with the same idempotency key is not reported again", async () => {
    const writer = await new Writer().begin("run_1");
    await writer.submit({ type: "start" });
    const once = { ...cancel("run_1"), once: { key: "stop", content: "stop run_1" } };
    const [first, again] = [await writer.submit(once), await writer.submit(once)];
    expect(again).toEqual(first);
    expect(writer.covered).toHaveLength(1);
  });
});

describe("a barrier", () => {
  test("resolves when everything decided before it is durable, whatever is decided after it", async () => {
    const writer = await new Writer().begin();
    const [first, second] = [new Gate(), new Gate()];
    writer.store.plan("append", 1, { kind: "delay-answer", until: first });
    writer.store.plan("append", 2, { kind: "delay-answer", until: second });
    writer.submit(accept("run_1"));
    const behindPending = watch(writer.commit.barrier(writer.lane));
    await settled();
    const behindFlight = watch(writer.commit.barrier(writer.lane));
    await settled();
    expect([behindPending.is, behindFlight.is]).toEqual(["waiting", "waiting"]);
    first.open();
    await settled();
    expect([behindPending.is, behindFlight.is]).toEqual(["answered", "answered"]);
    const alone = watch(writer.commit.barrier(writer.lane));
    await settled();
    writer.submit(accept("run_2"));
    await settled();
    expect(alone.is).toBe("answered");
  });

  test("writes nothing and reports nothing", async () => {
    const writer = await new Writer().begin();
    await writer.commit.barrier(writer.lane);
    expect(writer.store.calls("append")).toBe(1);
    expect(writer.reported).toEqual(["rested"]);
  });

  test("is rejected at once while the store fails, and when the session is lost", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    const lost = writer.submit(edit("run_1"));
    const behind = writer.commit.barrier(writer.lane);
    await expect(lost).rejects.toMatchObject({ code: "store_full" });
    await expect(behind).rejects.toMatchObject({ code: "store_full" });
    await expect(writer.commit.barrier(writer.lane)).rejects.toMatchObject({ code: "store_full" });
    writer.commit.fence(writer.lane);
    await expect(writer.commit.barrier(writer.lane)).rejects.toMatchObject(MOVED_AWAY);
  });
});

test("drained() resolves when nothing is pending and no batch is in flight", async () => {
  const writer = await new Writer().begin();
  await writer.commit.drained(writer.lane);
  const late = new Gate();
  writer.store.plan("append", 1, { kind: "delay-answer", until: late });
  writer.submit(accept("run_1"));
  const whilePending = watch(writer.commit.drained(writer.lane));
  await settled();
  const whileSent = watch(writer.commit.drained(writer.lane));
  writer.submit(accept("run_2"));
  await settled();
  expect([whilePending.is, whileSent.is]).toEqual(["waiting", "waiting"]);
  late.open();
  await settled();
  expect([whilePending.is, whileSent.is]).toEqual(["answered", "answered"]);
  expect(waiting(writer.lane.durable)).toBe("run_1 run_2");
});

test.each(["while a batch is on its way", "by the answer to a batch", "while it is unknown what was written"])(
  "drained() resolves at once for a session that was lost %s",
  async (how) => {
    const writer = await new Writer().begin("run_1");
    if (how === "while it is unknown what was written") {
      writer.store.plan("append", 1, { kind: "lose-answer" });
    } else if (how === "by the answer to a batch") {
      writer.log.append = async () => ({ kind: "fenced" });
    } else {
      writer.store.plan("append", 1, { kind: "delay", until: new Gate() });
    }
    watch(writer.submit(cancel("run_1")));
    await settled();
    if (writer.lane.phase === "ready") writer.commit.fence(writer.lane);
    const drained = watch(writer.commit.drained(writer.lane));
    await settled();
    expect(drained.is).toBe("answered");
  },
);

test(`a snapshot is written once every ${SNAPSHOT_EVENTS} events, and not in between`, async () => {
  const writer = await new Writer().begin("run_1");
  const upTo = (head: number) =>
    Promise.all(Array.from({ length: head - writer.lane.decided.head }, () => writer.submit(edit("run_1"))));
  for (const head of [-1, 0, 1].map((off) => SNAPSHOT_EVENTS + off)) await upTo(head);
  for (const head of [-1, 0].map((off) => 2 * SNAPSHOT_EVENTS + off)) await upTo(head);
  const snapshots = writer.sent.slice(1).map(({ snapshot }) => snapshot?.head);
  expect(snapshots).toEqual([undefined, SNAPSHOT_EVENTS, undefined, undefined, 2 * SNAPSHOT_EVENTS]);
});

describe("the lease", () => {
  test("is named in a driver's batch only, and a driver that has lost it writes nothing", async () => {
    const writer = await new Writer().begin();
    const claim = await writer.log.claim("ses_1", "wrk_1", 10_000);
    writer.lane.epoch = claim.kind === "claimed" ? claim.epoch : undefined;
    await writer.submit(accept("run_1"));
    const epochs = writer.sent.map((batch) => ("epoch" in batch ? batch.epoch : "none"));
    expect(epochs).toEqual(["none", writer.lane.epoch]);
    await writer.log.release("ses_1", "wrk_1");
    const refused = writer.submit(accept("run_2"));
    await Promise.resolve();
    const behind = writer.submit(accept("run_3"));
    const drained = writer.commit.drained(writer.lane);
    await expect(refused).rejects.toMatchObject(MOVED_AWAY);
    await expect(behind).rejects.toMatchObject(MOVED_AWAY);
    await drained;
    expect(writer.reported.at(-1)).toBe("fenced");
    await writer.commit.drained(writer.lane);
    await expect(writer.submit(cancel("run_1"))).rejects.toMatchObject(MOVED_AWAY);
    expect(await writer.types()).toEqual(["session.created", "run.accepted"]);
  });

  test("is needed to begin a process: only the driver could stop it", async () => {
    const writer = await new Writer().begin();
    const begin: CommandOf<"begin-process"> = {
      ...{ type: "begin-process", owner: "ses_1", command: "sleep 9", feedback: "silent" },
    };
    await expect(writer.submit(begin)).rejects.toMatchObject({
      ...{ code: "unavailable", message: expect.stringContaining("driven by another worker") },
    });
    writer.lane.epoch = 1;
    writer.log.append = async () => ({ kind: "appended", head: 2 });
    expect(await writer.submit(begin)).toMatchObject({ kind: "begun" });
  });

  test("when it is lost, stops that are not recorded are handed over, each as what it covered", async () => {
    const writer = await new Writer().begin("run_1", "run_2", "run_3");
    await writer.submit({ type: "start" });
    writer.store.plan("append", 1, { kind: "delay", until: new Gate() });
    const stops = [writer.submit(cancel("run_2")), writer.submit(accept("run_4"))].map(watch);
    await settled();
    stops.push(watch(writer.submit(cancelSession)));
    // Repeated: covers what is left.
    stops.push(watch(writer.submit(accept("run_5"))));
    writer.commit.fence(writer.lane);
    await settled();
    expect(stops.map(({ is }) => is)).toEqual(["refused", "refused", "refused", "refused"]);
    expect(writer.kept).toEqual(["run_2", "run_1", "run_3", "run_4"].map((id) => cancel(id as "run_1")));
  });

  test("when it is lost while the store fails, kept stops are handed over", async () => {
    const writer = await new Writer().begin("run_1", "run_2");
    writer.store.always("append", { kind: "fail", code: "store_full" });
    await writer.submit(cancel("run_1")).catch(() => {});
    await writer.submit(cancel("run_2")).catch(() => {});
    writer.commit.fence(writer.lane);
    expect(writer.kept).toEqual([cancel("run_1"), cancel("run_2")]);
    expect(writer.clock.pending).toEqual([]);
  });

  test("when it is lost, stops that were never decided here are not handed over: nothing was carried out", async () => {
    const writer = new Writer();
    writer.lane.phase = "loading";
    const received = writer.submit(cancel("run_1"));
    writer.commit.fence(writer.lane);
    await expect(received).rejects.toMatchObject(MOVED_AWAY);
    expect(writer.kept).toEqual([]);
  });

  test("when it is lost, a batch in flight that is written after all is reported to followers", async () => {
    const writer = await new Writer().begin();
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "delay", until: late });
    const sent = watch(writer.submit(accept("run_1")));
    await settled();
    writer.commit.fence(writer.lane);
    late.open();
    await settled();
    expect(sent).toMatchObject({ is: "refused", value: MOVED_AWAY });
    expect(writer.reported.slice(1, 3)).toEqual(["fenced", "recorded run.accepted"]);
  });
});

describe("a writer that was slower than another", () => {
  test("decides its batch again, on what the other has written", async () => {
    const writer = await new Writer().begin();
    const other = await new Writer(writer).begin("run_9");
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "delay", until: late });
    const answers: unknown[] = [];
    const slow = writer.submit(accept("run_1"), (answer) => void answers.push(answer));
    await settled();
    const slower = writer.submit(accept("run_2"));
    late.open();
    expect([await slow, await slower]).toMatchObject([
      { seq: 3, ahead: 1 },
      { seq: 4, ahead: 2 },
    ]);
    expect(answers).toMatchObject([
      { seq: 2, ahead: 0 },
      { seq: 3, ahead: 1 },
    ]);
    expect(writer.reported.slice(2)).toEqual([
      ...["recorded run.accepted", "caught up, queue: run_9 run_1 run_2"],
      ...["recorded run.accepted run.accepted", "rested"],
    ]);
    expect(await other.submit(accept("run_8"))).toMatchObject({ ahead: 3 });
  });

  test(`is refused after ${COMMIT_ATTEMPTS_MAX} attempts, and reads the log again later`, async () => {
    const writer = await new Writer().begin();
    writer.log.append = async () => ({ kind: "moved", head: 1 });
    await expect(writer.submit(accept("run_1"))).rejects.toMatchObject({
      code: "overloaded",
      message: "Session ses_1 is written to faster than Belay can decide.",
    });
    expect(writer.store.calls("read")).toBe(COMMIT_ATTEMPTS_MAX);
    await writer.clock.advance(50);
    expect(writer.store.calls("read")).toBe(COMMIT_ATTEMPTS_MAX + 1);
    expect(writer.clock.pending).toEqual([]);
  });

  test("keeps a stop, but no prompt, if it cannot read what the other has written", async () => {
    const writer = await new Writer().begin("run_1");
    await new Writer(writer).begin("run_9");
    writer.store.plan("read", 1, { kind: "fail", code: "unavailable" });
    const submitted = [writer.submit(cancel("run_1")), writer.submit(accept("run_2"))];
    await Promise.allSettled(submitted);
    await writer.clock.advance(100);
    expect(waiting(writer.lane.durable)).toBe("run_9");
  });

  test("reports nothing if its session is unloaded while it reads", async () => {
    const writer = await new Writer().begin();
    await new Writer(writer).begin("run_9");
    const late = new Gate();
    writer.store.plan("read", 1, { kind: "delay-answer", until: late });
    const slow = watch(writer.submit(accept("run_1")));
    await settled();
    writer.commit.fence(writer.lane);
    late.open();
    await settled();
    expect(slow.is).toBe("refused");
    expect(writer.reported.filter((one) => one.startsWith("recorded"))).toEqual([]);
  });
});

describe("leave()", () => {
  const CLOSING = { code: "shutting_down", message: "Belay is shutting down and accepts nothing new." };
  const UNANSWERED = {
    ...{ code: "unavailable", message: "Belay has closed before the store answered for session ses_1." },
  };

  test("rejects every caller: what was sent may have been written, the rest was not", async () => {
    const writer = await new Writer().begin();
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "delay-answer", until: late });
    const sent = watch(writer.submit(accept("run_1")));
    await settled();
    const decided = watch(writer.submit(accept("run_2")));
    const barrier = watch(writer.commit.barrier(writer.lane));
    const drained = watch(writer.commit.drained(writer.lane));
    const loading = readyLane();
    loading.phase = "loading";
    const received = watch(writer.commit.submit(loading, accept("run_3")));
    writer.commit.leave([writer.lane, loading]);
    await settled();
    expect(sent).toMatchObject({ is: "refused", value: UNANSWERED });
    for (const one of [decided, barrier, received]) expect(one).toMatchObject({ is: "refused", value: CLOSING });
    expect(drained.is).toBe("answered");
    expect(writer.clock.pending).toEqual([]);
    late.open();
    await settled();
    await writer.commit.drained(writer.lane);
    expect(await writer.types()).toEqual(["session.created", "run.accepted"]);
  });

  test("rejects a kept end of work with `unavailable` if the batch before it is in doubt", async () => {
    const writer = await new Writer().begin("run_1");
    await writer.submit({ type: "start" });
    writer.store.plan("append", 1, { kind: "lose-answer" });
    await writer.submit(accept("run_2")).catch(() => {});
    const behind = writer.submit(settleTurn);
    writer.commit.leave([writer.lane]);
    await expect(behind).rejects.toMatchObject(UNANSWERED);
  });

  test.each<readonly [string, () => Promise<Appended>]>([
    ["an error", () => Promise.reject(new Error("gone"))],
    ["moved", () => Promise.resolve({ kind: "moved", head: 2 })],
    ["fenced", () => Promise.resolve({ kind: "fenced" })],
    ["taken", () => Promise.resolve({ kind: "taken", runs: [] })],
  ])("ignores a late answer of the store: %s", async (_, answer) => {
    const writer = await new Writer().begin();
    const late = new Gate();
    writer.log.append = () => late.opened.then(answer);
    watch(writer.submit(accept("run_1")));
    await settled();
    writer.commit.leave([writer.lane]);
    const reported = [...writer.reported];
    const reads = writer.store.calls("read");
    late.open();
    await settled();
    expect([writer.reported, writer.notices, writer.clock.pending]).toEqual([reported, [], []]);
    expect(writer.store.calls("read")).toBe(reads);
  });
});
