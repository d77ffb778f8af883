// A failing store: what is refused at once, what is kept until it is recorded, and the answer of each caller.
import { describe, expect, test } from "vitest";
import {
  accept,
  cancel,
  cancelSession,
  readyLane,
  settleTurn,
  Writer,
  waiting,
  watch,
} from "../../../test/fixtures/commit.ts";
import { STOP_UNRECORDED } from "../../core/errors.ts";
import { Gate } from "../../testing/gate.ts";
import { settled } from "../../testing/manual-clock.ts";

const CREATED = ["session.created", "run.accepted"];
const CARRIED_OUT = "The stop was carried out here, but could not be recorded yet:";
const FULL = { code: "store_full", message: "The store could not append." };
const UNRECORDED = { code: "store_full", message: `${CARRIED_OUT} The store could not append.`, hint: STOP_UNRECORDED };

/** A writer with `run_1` live and `run_2` in its queue. */
async function withLiveRun(): Promise<Writer> {
  const writer = await new Writer().begin("run_1", "run_2");
  await writer.submit({ type: "start" });
  writer.reported.length = 0;
  return writer;
}

describe("a store that refuses a batch", () => {
  test("refuses its prompts, which leave nothing behind, and does not keep the program alive", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    const refused = writer.submit(accept("run_2"));
    const drained = writer.commit.drained(writer.lane);
    await expect(refused).rejects.toMatchObject(FULL);
    await drained;
    expect(writer.notices).toEqual([{ type: "store", session: "ses_1", ...FULL }]);
    expect(writer.reported).toEqual(["decided accept", "caught up, queue: run_1", "rested"]);
    expect(waiting(writer.lane.decided)).toBe("run_1");
    expect(writer.clock.pending).toEqual([{ inMs: 50, idle: true }]);
  });

  test("refuses the prompts of the next 50 ms at once, undecided and unsent; then the next is tried", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    await writer.submit(accept("run_2")).catch(() => {});
    const appends = writer.store.calls("append");
    writer.reported.length = 0;
    await writer.clock.advance(49);
    const decided: unknown[] = [];
    await expect(writer.submit(accept("run_3"), (answer) => decided.push(answer))).rejects.toMatchObject(FULL);
    expect([decided, writer.reported]).toEqual([[], []]);
    expect(writer.store.calls("append")).toBe(appends);
    await writer.clock.advance(1);
    // So that a queue that waits for the store starts now.
    expect(writer.reported).toEqual(["caught up, queue: run_1"]);
    expect(writer.commit.takesCommands(writer.lane)).toBe(true);
    expect(await writer.submit(accept("run_4"))).toMatchObject({ kind: "accepted", ahead: 1 });
    expect(writer.clock.pending).toEqual([]);
  });

  test("keeps a stop and retries it after 50 ms, doubling to 2 s; its caller is answered at once", async () => {
    const writer = await new Writer().begin("run_1", "run_2");
    writer.store.always("append", { kind: "fail", code: "store_full" });
    await expect(writer.submit(cancel("run_1"))).rejects.toMatchObject({ ...UNRECORDED, cause: FULL });
    const pauses: number[] = [];
    for (let tries = 0; tries < 8; tries += 1) {
      pauses.push(...writer.clock.pending.map(({ inMs }) => inMs));
      await writer.clock.advance(pauses.at(-1) ?? 0);
    }
    expect(pauses).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    writer.store.heal();
    await writer.clock.advance(2_000);
    expect(await writer.types()).toEqual([...CREATED, "run.accepted", "run.settled"]);
    // The next failure begins with the first pause.
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    await writer.submit(cancel("run_2")).catch(() => {});
    expect(writer.clock.pending).toEqual([{ inMs: 50, idle: false }]);
  });

  test("has a stop that is received during the pause decided and answered at once, and sends it later", async () => {
    const writer = await withLiveRun();
    writer.store.always("append", { kind: "fail", code: "store_full" });
    await writer.submit(cancel("run_2")).catch(() => {});
    writer.covered.length = 0;
    const appends = writer.store.calls("append");
    const stop = writer.submit(cancelSession);
    expect(writer.covered).toHaveLength(1);
    await expect(stop).rejects.toMatchObject(UNRECORDED);
    expect(writer.store.calls("append")).toBe(appends);
  });

  test("keeps the end of work, and resolves it when it is recorded", async () => {
    const writer = await withLiveRun();
    writer.store.plan("append", 1, { kind: "fail", code: "store_locked" });
    const ended = watch(writer.submit(settleTurn));
    await settled();
    expect(ended.is).toBe("waiting");
    await writer.clock.advance(50);
    expect(ended).toEqual({ is: "answered", value: "recorded" });
  });

  test("has a stop that changes nothing answered at once: its answer needs no record", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    await writer.submit(accept("run_2")).catch(() => {});
    expect(await writer.submit(cancel("run_2"))).toEqual({ kind: "unknown" });
    expect(writer.store.calls("append")).toBe(2);
  });

  test("does not answer a repeated stop as recorded while the first one is not", async () => {
    const writer = await withLiveRun();
    writer.store.always("append", { kind: "fail", code: "store_full" });
    const first = writer.submit(cancel("run_1"));
    await expect(first).rejects.toMatchObject(UNRECORDED);
    await expect(writer.submit(cancel("run_1"))).rejects.toMatchObject(UNRECORDED);
  });
});

describe("the scope of a refusal", () => {
  test("G33: a stop that is refused for hours does not keep the batches it was sent with", async () => {
    const writer = await withLiveRun();
    writer.store.always("append", { kind: "fail", code: "store_full" });
    watch(writer.submit(cancel("run_1")));
    await writer.clock.advance(60_000);
    expect(writer.store.calls("append")).toBeGreaterThan(30);
    expect(writer.lane.pending.map(({ flights }) => flights?.length)).toEqual([1]);
  });

  test("new: a batch with a prompt was refused, so its stop is sent again at once, alone", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    const submitted = await Promise.allSettled([writer.submit(accept("run_2")), writer.submit(cancel("run_1"))]);
    expect(submitted).toMatchObject([
      { status: "rejected", reason: FULL },
      { status: "fulfilled", value: { kind: "withdrawn" } },
    ]);
    expect(await writer.types()).toEqual([...CREATED, "run.settled"]);
    expect(writer.lane.health.kind).toBe("well");
    expect(writer.clock.pending).toEqual([]);
  });

  test("new: a live run continues although prompts are refused: its calls are recorded", async () => {
    const writer = await withLiveRun();
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    const call = { type: "call", callId: "call_1.1", name: "build", input: null } as const;
    const submitted = await Promise.allSettled([writer.submit(accept("run_3")), writer.submit(call)]);
    expect(submitted).toMatchObject([{ status: "rejected", reason: FULL }, { value: { kind: "called" } }]);
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    await writer.submit(accept("run_3")).catch(() => {});
    expect(await writer.submit({ ...call, callId: "call_1.2" })).toMatchObject({ kind: "called" });
  });

  test("refusable: a call was refused, so the end of its turn is sent at once, alone", async () => {
    const writer = await withLiveRun();
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    const call = { type: "call", callId: "call_1.1", name: "build", input: null } as const;
    await expect(writer.submit(call)).rejects.toMatchObject(FULL);
    await expect(writer.submit(call)).rejects.toMatchObject(FULL);
    expect(await writer.submit(cancel("run_1"))).toMatchObject({ kind: "stopping" });
    expect(writer.clock.pending).toEqual([]);
  });

  test("new: a stop that is received in the pause is sent at once, although prompts are refused", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    await writer.submit(accept("run_2")).catch(() => {});
    await writer.submit(cancel("run_1")).catch(() => {});
    await settled();
    expect(await writer.types()).toEqual([...CREATED, "run.settled"]);
    expect(writer.lane.health.kind).toBe("well");
  });

  test("new: a stop that repeats one in flight is not answered before that is recorded", async () => {
    const writer = await withLiveRun();
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    writer.store.plan("append", 2, { kind: "delay", until: late });
    void Promise.allSettled([writer.submit(accept("run_3")), writer.submit(cancel("run_1"))]);
    await settled();
    expect(writer.lane.flight).toBeDefined();
    const repeated = watch(writer.submit(cancel("run_1")));
    await settled();
    // A receipt would report `stopping since …`, of a stop that the store may still refuse.
    expect(repeated.is).not.toBe("answered");
  });

  test("all: a batch of stops alone was refused, so they wait for the pause", async () => {
    const writer = await new Writer().begin("run_1", "run_2");
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    await writer.submit(cancel("run_1")).catch(() => {});
    await writer.submit(cancel("run_2")).catch(() => {});
    await writer.clock.advance(49);
    expect(writer.store.calls("append")).toBe(2);
    await writer.clock.advance(1);
    expect(writer.store.calls("append")).toBe(3);
    expect(waiting(writer.lane.durable)).toBe("");
  });

  test("all: after the pause a prompt is sent with kept commands, or these alone if that is refused", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    writer.store.plan("append", 2, { kind: "fail", code: "store_full" });
    await writer.submit(cancel("run_1")).catch(() => {});
    // The clock is past the pause, and its timer has not fired yet.
    writer.clock.after(50, () => void watch(writer.submit(accept("run_2"))));
    writer.lane.cancelRetry();
    await writer.clock.advance(50);
    expect(writer.sent.at(-1)?.events.map(({ type }) => type)).toEqual(["run.settled"]);
    expect(await writer.types()).toEqual([...CREATED, "run.settled"]);
  });
});

describe("retries", () => {
  test("end when the session is lost", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.plan("append", 1, { kind: "fail", code: "store_full" });
    await writer.submit(cancel("run_1")).catch(() => {});
    writer.commit.fence(writer.lane);
    const reads = writer.store.calls("read");
    await writer.clock.advance(50);
    expect(writer.store.calls("read")).toBe(reads);
    expect(writer.reported.at(-1)).toBe("fenced");
  });

  test("end with stop(), and later failures begin none", async () => {
    const writer = await new Writer().begin("run_1", "run_2");
    writer.store.always("append", { kind: "fail", code: "store_full" });
    await writer.submit(cancel("run_1")).catch(() => {});
    writer.commit.stop([readyLane(), writer.lane]);
    expect(writer.clock.pending).toEqual([]);
    writer.clock.tick(50);
    await writer.submit(cancel("run_2")).catch(() => {});
    expect(writer.notices).toHaveLength(2);
    expect(writer.clock.pending).toEqual([]);
  });

  test("are not lost if the timer fires a fraction of a millisecond early, as those of Node.js do", async () => {
    for (const code of ["store_full", "unavailable"] as const) {
      const writer = await new Writer().begin("run_1");
      const elapsed = writer.clock.elapsed.bind(writer.clock);
      let fraction = 0.9;
      writer.clock.elapsed = () => elapsed() + fraction;
      writer.store.plan("append", 1, { kind: "fail", code });
      await writer.submit(cancel("run_1")).catch(() => {});
      fraction = 0.1;
      await writer.clock.advance(2_000);
      expect([code, waiting(writer.lane.durable)]).toEqual([code, ""]);
    }
  });

  test("keep the program alive only for kept commands", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.always("append", { kind: "fail", code: "store_full" });
    await writer.submit(accept("run_2")).catch(() => {});
    expect(writer.clock.pending).toEqual([{ inMs: 50, idle: true }]);
    await writer.submit(cancel("run_1")).catch(() => {});
    await settled();
    expect(writer.clock.pending.map(({ idle }) => idle)).toEqual([false]);
  });
});

describe("a store that does not report what it has written", () => {
  test("a stop that was written covers nothing that was accepted after it", async () => {
    const writer = await new Writer().begin("run_1");
    const other = await new Writer(writer).begin();
    writer.store.plan("append", 1, { kind: "lose-answer" });
    await expect(writer.submit(cancelSession)).rejects.toMatchObject({
      ...{ code: "unavailable", message: `${CARRIED_OUT} The store did not answer to append.` },
    });
    await other.submit(accept("run_2"));
    await writer.clock.advance(50);
    expect(waiting(writer.lane.decided)).toBe("run_2");
    expect(writer.reported.at(-1)).toBe("rested");
  });

  test("an incomplete read of the log is repeated, and not taken for the whole log", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.plan("append", 1, { kind: "lose-answer" });
    writer.submit(cancelSession).catch(() => {});
    writer.submit(accept("run_2")).catch(() => {});
    writer.store.plan("read", 2, { kind: "fail", code: "unavailable" });
    await writer.clock.advance(50);
    expect(writer.store.calls("read")).toBe(2);
    // The stop would be decided again on half of the log.
    expect(waiting(writer.lane.durable)).toBe("run_1");
    await writer.clock.advance(100);
    expect(waiting(writer.lane.durable)).toBe("run_2");
    expect((await writer.types()).filter((type) => type === "session.cancel_requested")).toHaveLength(1);
  });

  test("a stop that was not written is written, whatever another writer has written meanwhile", async () => {
    const writer = await new Writer().begin("run_1");
    const other = await new Writer(writer).begin();
    writer.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await writer.submit(cancel("run_1")).catch(() => {});
    await other.submit(accept("run_2"));
    await writer.clock.advance(50);
    expect(waiting(writer.lane.durable)).toBe("run_2");
    writer.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await writer.submit(cancel("run_2")).catch(() => {});
    await writer.clock.advance(50);
    expect(waiting(writer.lane.durable)).toBe("");
  });

  test("of two stops in one batch, one that another writer has written does not hide the other", async () => {
    const writer = await new Writer().begin("run_1", "run_2");
    const other = await new Writer(writer).begin();
    writer.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await Promise.allSettled([writer.submit(cancel("run_1")), writer.submit(cancel("run_2"))]);
    await other.submit(cancel("run_1"));
    await writer.clock.advance(50);
    expect(waiting(writer.lane.durable)).toBe("");
  });

  test("the end of a turn that was written is resolved as soon as the log has been read", async () => {
    const writer = await withLiveRun();
    writer.store.plan("append", 1, { kind: "lose-answer" });
    const ended = watch(writer.submit(settleTurn));
    await settled();
    expect(ended.is).toBe("waiting");
    await writer.clock.advance(50);
    expect(ended).toEqual({ is: "answered", value: "recorded" });
  });

  test("commands decided after the batch in doubt are written, and answered then", async () => {
    const writer = await withLiveRun();
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "lose-answer" });
    writer.store.plan("append", 2, { kind: "delay", until: late });
    const stopped = watch(writer.submit(cancel("run_1")));
    await Promise.resolve();
    // The stop is in flight by now.
    const ended = watch(writer.submit(settleTurn));
    await writer.clock.advance(50);
    expect([stopped.is, ended.is]).toEqual(["refused", "waiting"]);
    late.open();
    await settled();
    expect(ended).toEqual({ is: "answered", value: "recorded" });
    const types = await writer.types();
    expect(types.filter((type) => type === "run.cancel_requested")).toHaveLength(1);
    expect(types.at(-1)).toBe("run.settled");
  });

  test("a stop covers a prompt that may have been written, and stops it if it was", async () => {
    for (const kind of ["lose-answer", "fail"] as const) {
      const writer = await new Writer().begin();
      writer.store.plan("append", 1, { kind, code: "unavailable" });
      await writer.submit(accept("run_1")).catch(() => {});
      expect(waiting(writer.lane.decided)).toBe("run_1");
      await writer.submit(cancelSession).catch(() => {});
      expect(writer.covered).toEqual([{ runs: ["run_1"], work: [], processes: [] }]);
      await writer.clock.advance(50);
      expect(waiting(writer.lane.durable)).toBe("");
      expect((await writer.types()).includes("run.settled")).toBe(kind === "lose-answer");
    }
  });

  test("prompts are refused at once until the log has been read; stops are decided and sent after that", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await writer.submit(accept("run_2")).catch(() => {});
    writer.store.plan("read", 1, { kind: "fail", code: "unavailable" });
    await expect(writer.submit(accept("run_3"))).rejects.toMatchObject({ message: "The store could not append." });
    await writer.clock.advance(50);
    await expect(writer.submit(accept("run_4"))).rejects.toMatchObject({ message: "The store could not read." });
    await expect(writer.submit(cancel("run_1"))).rejects.toMatchObject({
      ...{ message: `${CARRIED_OUT} The store could not read.`, hint: STOP_UNRECORDED },
    });
    expect(writer.store.calls("append")).toBe(2);
    await writer.clock.advance(100);
    expect(await writer.types()).toEqual([...CREATED, "run.settled"]);
    expect(await writer.submit(accept("run_5"))).toMatchObject({ kind: "accepted", ahead: 0 });
  });

  test("a stop after the decided end of its run covers nothing, and is not answered as carried out", async () => {
    for (const code of ["store_full", "unavailable"] as const) {
      const writer = await new Writer().begin("run_1");
      await writer.submit({ type: "start" });
      writer.store.always("append", { kind: "fail", code });
      const ended = watch(writer.submit(settleTurn));
      await settled();
      const stop = watch(writer.submit(cancel("run_1")));
      await settled();
      expect(writer.covered).toEqual([{ runs: [], work: [], processes: [] }]);
      expect(ended.is).toBe("waiting");
      expect(stop.value).not.toMatchObject({ hint: STOP_UNRECORDED });
      writer.commit.leave([writer.lane]);
    }
  });

  test("a successful read does not reset the pauses: if the next batch fails, they keep growing", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.always("append", { kind: "fail", code: "unavailable" });
    await writer.submit(cancel("run_1")).catch(() => {});
    const pauses: number[] = [];
    for (let tries = 0; tries < 4; tries += 1) {
      pauses.push(...writer.clock.pending.map(({ inMs }) => inMs));
      await writer.clock.advance(pauses.at(-1) ?? 0);
    }
    expect(pauses).toEqual([50, 100, 200, 400]);
    expect(writer.store.calls("read")).toBe(4);
  });

  test("a stop that is received while the answer is lost is not sent before the log has been read", async () => {
    const writer = await new Writer().begin("run_1", "run_2");
    let lose = (_: Error): void => {};
    let sent = 0;
    const { append } = writer.store;
    writer.store.append = (batch) => {
      sent += 1;
      return sent > 1
        ? append(batch)
        : new Promise((_, reject) => {
            lose = reject;
          });
    };
    watch(writer.submit(cancel("run_1")));
    await settled();
    lose(new Error("lost"));
    watch(writer.submit(cancel("run_2")));
    await settled();
    expect(sent).toBe(1);
    await writer.clock.advance(50);
    expect(waiting(writer.lane.durable)).toBe("");
  });

  test("drained() waits until the log has been read and kept commands are written", async () => {
    const writer = await new Writer().begin("run_1");
    writer.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await writer.submit(accept("run_2")).catch(() => {});
    const first = watch(writer.commit.drained(writer.lane));
    await settled();
    expect(first.is).toBe("waiting");
    await writer.clock.advance(50);
    expect(first.is).toBe("answered");
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    writer.store.plan("append", 2, { kind: "delay", until: late });
    await writer.submit(cancel("run_1")).catch(() => {});
    const second = watch(writer.commit.drained(writer.lane));
    await writer.clock.advance(100);
    expect(second.is).toBe("waiting");
    late.open();
    await settled();
    expect(second.is).toBe("answered");
  });

  test("a session that is lost while the log is read reports nothing of it, and hands its stops over", async () => {
    const writer = await new Writer().begin("run_1", "run_2");
    writer.store.plan("append", 1, { kind: "lose-answer" });
    const late = new Gate();
    writer.store.plan("read", 1, { kind: "delay", until: late });
    await writer.submit(cancel("run_1")).catch(() => {});
    await writer.submit(cancel("run_2")).catch(() => {});
    await writer.clock.advance(50);
    writer.commit.fence(writer.lane);
    late.open();
    await settled();
    expect(writer.kept).toEqual([cancel("run_1"), cancel("run_2")]);
    expect(writer.reported.at(-1)).toBe("fenced");
  });

  test.each([
    ["of the run", cancel("run_2")],
    ["of the session", cancelSession],
  ])(
    "G28: a stop %s that was reported as carried out holds, although the interrupt before it is refused",
    async (_, stop) => {
      const writer = await new Writer().begin("run_1");
      await writer.submit({ type: "start" });
      await writer.submit({ ...accept("run_2"), delivery: "steer" });
      writer.store.plan("append", 1, { kind: "fail", code: "unavailable" });
      // With the interrupt the end of the turn ends run_1, and run_2 waits in the queue; without it run_1 takes run_2.
      const interrupt = writer.submit({ ...accept("run_3"), delivery: "interrupt" });
      void writer.submit({ ...settleTurn, end: { ...settleTurn.end, next: "turn" } });
      await Promise.all([
        expect(writer.submit(stop)).rejects.toMatchObject({ hint: STOP_UNRECORDED }),
        expect(interrupt).rejects.toMatchObject({ code: "unavailable" }),
      ]);
      await writer.clock.advance(50);
      const { events } = await writer.log.read("ses_1", { after: 0, limit: 100 });
      const ends = events.filter((event) => event.type === "run.settled" && event.runId === "run_2");
      expect(ends).toMatchObject([{ outcome: { kind: "cancelled" } }]);
    },
  );
});
