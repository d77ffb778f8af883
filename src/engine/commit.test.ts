// The only writer, by itself: what is written, and when whoever asked is told.
import { describe, expect, test } from "vitest";
import { accept, cancel, edit, keyed, Office, readyLane, waiting, watch } from "../../test/fixtures/commit.ts";
import type { Command, CommandOf } from "../core/command.ts";
import { STOP_UNRECORDED } from "../core/control-error.ts";
import { COMMIT_ATTEMPTS_MAX, SNAPSHOT_EVENTS } from "../core/limits.ts";
import type { Appended } from "../ports.ts";
import { Gate } from "../testing/gate.ts";
import { settled } from "../testing/manual-clock.ts";
import { isLasting } from "./commit.ts";
import { NOTHING } from "./look.ts";

test("what is asked in one tick is one write, in the order in which it was asked", async () => {
  const office = new Office();
  const answers = await Promise.all([
    office.submit({ type: "create" }),
    office.submit(accept("run_1")),
    office.submit(accept("run_2")),
  ]);
  expect(answers).toMatchObject([{ kind: "created" }, { seq: 2, ahead: 0 }, { seq: 3, ahead: 1 }]);
  expect(office.store.calls("append")).toBe(1);
  expect(office.told).toEqual([
    ...["decided create", "decided accept", "decided accept"],
    ...["recorded session.created run.accepted run.accepted", "rested"],
  ]);
});

test("one write at a time is on its way; what comes meanwhile is the next, and nobody is told too early", async () => {
  const office = await new Office().begin();
  const late = new Gate();
  office.store.plan("append", 1, { kind: "delay-answer", until: late });
  const first = watch(office.submit(accept("run_1")));
  await settled();
  const others = [watch(office.submit(accept("run_2"))), watch(office.submit(NOTHING))];
  await settled();
  expect([first.is, ...others.map(({ is }) => is)]).toEqual(["waiting", "waiting", "waiting"]);
  expect(office.store.calls("append")).toBe(2);
  late.open();
  await settled();
  expect([first.is, ...others.map(({ is }) => is)]).toEqual(["answered", "answered", "answered"]);
  expect(office.store.calls("append")).toBe(3);
  expect(waiting(office.lane.durable)).toBe("run_1 run_2");
});

test("what changes nothing is not written, and sets nothing in motion", async () => {
  const office = await new Office().begin();
  await Promise.all([office.submit(NOTHING), office.submit(NOTHING)]);
  expect(office.store.calls("append")).toBe(1);
  expect(office.told).toEqual(["rested"]);
});

test("what must be looked up first is looked up once, and holds up what was asked after it", async () => {
  const office = await new Office().begin();
  const found = new Gate();
  let lookedUp = 0;
  const slow = office.submit(keyed("run_1"), async (command) => {
    lookedUp += 1;
    await found.opened;
    return { ...command, prompt: { text: "found" } };
  });
  const behind = office.submit(accept("run_2"));
  await settled();
  expect(office.told).toEqual([]);
  found.open();
  expect([await slow, await behind]).toMatchObject([{ ahead: 0 }, { ahead: 1 }]);
  expect(lookedUp).toBe(1);
  expect(office.lane.durable.queue[0]?.prompt).toEqual({ text: "found" });
});

test("a look-up that fails refuses what it was for, and nothing behind it", async () => {
  const office = await new Office().begin();
  const failed = office.submit(keyed("run_1"), () => Promise.reject(new Error("no such table")));
  const behind = office.submit(accept("run_2"));
  await expect(failed).rejects.toMatchObject({ code: "internal", cause: new Error("no such table") });
  expect(await behind).toMatchObject({ kind: "accepted", ahead: 0 });
});

test("a contradiction refuses whoever met it, tells the operator, and stops nobody else", async () => {
  const office = await new Office().begin();
  const impossible = office.submit({ ...NOTHING, type: "impossible" } as unknown as typeof NOTHING);
  const next = office.submit(accept("run_1"));
  await expect(impossible).rejects.toMatchObject({ code: "internal" });
  expect(await next).toMatchObject({ kind: "accepted" });
  expect(office.notices).toMatchObject([{ type: "bug", session: "ses_1", error: expect.any(TypeError) }]);
});

test("whoever waits for quiet waits for what is decided and for what is on its way", async () => {
  const office = await new Office().begin();
  await office.commit.quiet(office.lane);
  const late = new Gate();
  office.store.plan("append", 1, { kind: "delay-answer", until: late });
  office.submit(accept("run_1"));
  const whileDecided = watch(office.commit.quiet(office.lane));
  await settled();
  const whileSent = watch(office.commit.quiet(office.lane));
  await settled();
  expect([whileDecided.is, whileSent.is]).toEqual(["waiting", "waiting"]);
  late.open();
  await settled();
  expect([whileDecided.is, whileSent.is]).toEqual(["answered", "answered"]);
});

test("a snapshot is written with every so many events, and not in between", async () => {
  const office = await new Office().begin("run_1");
  const upTo = (head: number) =>
    Promise.all(Array.from({ length: head - office.lane.decided.head }, () => office.submit(edit("run_1"))));
  for (const head of [-1, 0, 1].map((off) => SNAPSHOT_EVENTS + off)) await upTo(head);
  for (const head of [-1, 0].map((off) => 2 * SNAPSHOT_EVENTS + off)) await upTo(head);
  const snapshots = office.sent.slice(1).map(({ snapshot }) => snapshot?.head);
  expect(snapshots).toEqual([undefined, SNAPSHOT_EVENTS, undefined, undefined, 2 * SNAPSHOT_EVENTS]);
});

test("whoever only asks names no lease; a driver names its own, and writes nothing once that is gone", async () => {
  const office = await new Office().begin();
  const claim = await office.log.claim("ses_1", "wrk_1", 10_000);
  office.lane.epoch = claim.kind === "claimed" ? claim.epoch : undefined;
  await office.submit(accept("run_1"));
  expect(office.sent.map((batch) => ("epoch" in batch ? batch.epoch : "none"))).toEqual(["none", office.lane.epoch]);
  await office.log.release("ses_1", "wrk_1");
  const refused = office.submit(accept("run_2"));
  const behind = office.submit(keyed("run_3"), () => new Promise(() => {}));
  const quiet = office.commit.quiet(office.lane);
  const moved = { code: "unavailable", message: "Session ses_1 is driven by another worker now." };
  await expect(refused).rejects.toMatchObject(moved);
  await expect(behind).rejects.toMatchObject(moved);
  await quiet;
  expect(office.told.at(-1)).toBe("fenced");
  await office.commit.quiet(office.lane);
  await expect(office.submit(cancel("run_1"))).rejects.toMatchObject(moved);
  expect(await office.types()).toEqual(["session.created", "run.accepted"]);
});

test("whoever was slower than another writer is decided anew, on what the other has written", async () => {
  const office = await new Office().begin();
  const other = await new Office(office).begin("run_9");
  const late = new Gate();
  office.store.plan("append", 1, { kind: "delay", until: late });
  const slow = office.submit(accept("run_1"));
  await settled();
  const slower = office.submit(accept("run_2"));
  late.open();
  expect([await slow, await slower]).toMatchObject([
    { seq: 3, ahead: 1 },
    { seq: 4, ahead: 2 },
  ]);
  expect(office.told.slice(2)).toEqual([
    ...["recorded run.accepted", "caught up, with run_9 run_1 run_2"],
    ...["recorded run.accepted run.accepted", "rested"],
  ]);
  expect(await other.submit(accept("run_8"))).toMatchObject({ ahead: 3 });
});

test("whoever is slower than others time and again is refused in the end", async () => {
  const office = await new Office().begin();
  office.log.append = async () => ({ kind: "moved", head: 1 });
  await expect(office.submit(accept("run_1"))).rejects.toMatchObject({
    code: "overloaded",
    message: "Session ses_1 is written to faster than Belay can decide.",
  });
  expect(office.store.calls("read")).toBe(COMMIT_ATTEMPTS_MAX);
  expect(office.clock.pending).toEqual([]);
});

test("a stop that came too late to be first is kept if what others have written cannot be read", async () => {
  const office = await new Office().begin("run_1");
  await new Office(office).begin("run_9");
  office.store.plan("read", 1, { kind: "fail", code: "unavailable" });
  await office.submit(cancel("run_1")).catch(() => {});
  await office.clock.advance(100);
  expect(waiting(office.lane.durable)).toBe("run_9");
});

test("a lane that is not loaded yet decides nothing", async () => {
  const office = new Office();
  office.lane.phase = "loading";
  const created = office.submit({ type: "create" });
  await settled();
  expect(office.told).toEqual([]);
  office.lane.phase = "ready";
  office.commit.pump(office.lane);
  expect(await created).toMatchObject({ kind: "created" });
});

test("a lane that is let go of while it looks what others have written tells nobody of it", async () => {
  const office = await new Office().begin();
  await new Office(office).begin("run_9");
  const late = new Gate();
  office.store.plan("read", 1, { kind: "delay-answer", until: late });
  const slow = watch(office.submit(accept("run_1")));
  await settled();
  office.commit.fence(office.lane);
  late.open();
  await settled();
  expect(slow.is).toBe("refused");
  expect(office.told.filter((one) => one.startsWith("recorded"))).toEqual([]);
});

const CREATED = ["session.created", "run.accepted"];
const CARRIED_OUT = "The stop was carried out here, but could not be recorded yet:";
const settle: CommandOf<"settle-turn"> = {
  ...{ type: "settle-turn", end: { turnId: "turn_1.1", outcome: { kind: "completed" }, next: "end", text: "" } },
};

describe("a store that could not write", () => {
  test("refuses what can be asked again; that leaves nothing, and stands in nobody's way", async () => {
    const office = await new Office().begin("run_1");
    office.store.plan("append", 1, { kind: "fail", code: "store_full" });
    const refused = office.submit(accept("run_2"));
    const quiet = office.commit.quiet(office.lane);
    await expect(refused).rejects.toMatchObject({ code: "store_full", message: "The store could not append." });
    await quiet;
    const message = "The store could not append.";
    expect(office.notices).toEqual([{ type: "store", session: "ses_1", code: "store_full", message }]);
    expect(office.told).toEqual(["decided accept", "caught up, with run_1", "rested"]);
    expect(office.clock.pending).toEqual([]);
  });

  test("a stop is kept, and tried at growing intervals until it is recorded; whoever asked knows at once", async () => {
    const office = await new Office().begin("run_1", "run_2");
    office.store.always("append", { kind: "fail", code: "store_full" });
    await expect(office.submit(cancel("run_1"))).rejects.toMatchObject({
      ...{ code: "store_full", message: `${CARRIED_OUT} The store could not append.`, hint: STOP_UNRECORDED },
      cause: { code: "store_full", message: "The store could not append." },
    });
    const pauses: number[] = [];
    for (let tries = 0; tries < 8; tries += 1) {
      pauses.push(...office.clock.pending.map(({ inMs }) => inMs));
      await office.clock.advance(pauses.at(-1) ?? 0);
    }
    expect(pauses).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    office.store.heal();
    await office.clock.advance(2_000);
    expect(await office.types()).toEqual([...CREATED, "run.accepted", "run.settled"]);
    // The next trouble begins from the beginning.
    office.store.plan("append", 1, { kind: "fail", code: "store_full" });
    await office.submit(cancel("run_2")).catch(() => {});
    expect(office.clock.pending).toMatchObject([{ inMs: 50 }]);
  });

  test("the end of a piece of work waits, and is told when it is recorded", async () => {
    const office = await new Office().begin("run_1");
    await office.submit({ type: "start" });
    office.store.plan("append", 1, { kind: "fail", code: "store_locked" });
    const ended = watch(office.submit(settle));
    await settled();
    expect(ended.is).toBe("waiting");
    await office.clock.advance(50);
    expect(ended).toEqual({ is: "answered", value: "recorded" });
  });

  test("what was kept is written with what is asked next, without waiting for its time", async () => {
    const office = await new Office().begin("run_1");
    office.store.plan("append", 1, { kind: "fail", code: "store_full" });
    await office.submit(cancel("run_1")).catch(() => {});
    expect(await office.submit(accept("run_2"))).toMatchObject({ kind: "accepted", ahead: 0 });
    expect(office.clock.pending).toEqual([]);
    expect(waiting(office.lane.durable)).toBe("run_2");
  });

  test("a lane that was let go of meanwhile is not tried again", async () => {
    const office = await new Office().begin("run_1");
    office.store.plan("append", 1, { kind: "fail", code: "store_full" });
    await office.submit(cancel("run_1")).catch(() => {});
    office.commit.fence(office.lane);
    const reads = office.store.calls("read");
    await office.clock.advance(50);
    expect(office.store.calls("read")).toBe(reads);
    expect(office.told.at(-1)).toBe("fenced");
  });

  test("nothing is tried again once the house has stopped", async () => {
    const office = await new Office().begin("run_1", "run_2");
    office.store.always("append", { kind: "fail", code: "store_full" });
    await office.submit(cancel("run_1")).catch(() => {});
    office.commit.stop([readyLane(), office.lane]);
    expect(office.clock.pending).toEqual([]);
    await office.submit(cancel("run_2")).catch(() => {});
    expect(office.notices).toHaveLength(2);
    expect(office.clock.pending).toEqual([]);
  });

  test.each<Command["type"]>([
    ...(["cancel-session", "cancel-run", "cancel-key", "cancel-call", "cancel-process", "close"] as const),
    ...(["settle-turn", "settle-call", "settle-process", "detach-process", "expire", "recover", "park"] as const),
  ])("keeps %s until it is recorded", (type) => {
    expect(isLasting({ type } as Command)).toBe(true);
  });

  test.each<Command["type"]>(["accept", "edit", "withdraw", "start", "call", "answer", "cancel-question"])(
    "refuses %s",
    (type) => {
      expect(isLasting({ type } as Command)).toBe(false);
    },
  );
});

describe("a store that does not say what it has written", () => {
  test("a stop that was written covers nothing that was accepted after it", async () => {
    const office = await new Office().begin("run_1");
    const other = await new Office(office).begin();
    office.store.plan("append", 1, { kind: "lose-answer" });
    await expect(office.submit({ type: "cancel-session", reason: { kind: "user" } })).rejects.toMatchObject({
      ...{ code: "unavailable", message: `${CARRIED_OUT} The store did not answer to append.` },
    });
    await other.submit(accept("run_2"));
    await office.clock.advance(50);
    expect(waiting(office.lane.decided)).toBe("run_2");
    expect(office.told.at(-1)).toBe("rested");
  });

  test("nor while the log is read, if what follows cannot be read at once", async () => {
    const office = await new Office().begin("run_1");
    office.store.plan("append", 1, { kind: "lose-answer" });
    office.submit({ type: "cancel-session", reason: { kind: "user" } }).catch(() => {});
    office.submit(accept("run_2")).catch(() => {});
    office.store.plan("read", 2, { kind: "fail", code: "unavailable" });
    await office.clock.advance(50);
    expect(office.store.calls("read")).toBe(2);
    // Half of what was read would be what the stop is decided on once more.
    expect(waiting(office.lane.durable)).toBe("run_1");
    await office.clock.advance(100);
    expect(waiting(office.lane.durable)).toBe("run_2");
    expect((await office.types()).filter((type) => type === "session.cancel_requested")).toHaveLength(1);
  });

  test("a stop that was not written is written, whatever others have written meanwhile", async () => {
    const office = await new Office().begin("run_1");
    const other = await new Office(office).begin();
    office.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await office.submit(cancel("run_1")).catch(() => {});
    await other.submit(accept("run_2"));
    await office.clock.advance(50);
    expect(waiting(office.lane.durable)).toBe("run_2");
    office.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await office.submit(cancel("run_2")).catch(() => {});
    await office.clock.advance(50);
    expect(waiting(office.lane.durable)).toBe("");
  });

  test("of two stops that were sent together, one that another has written does not hide the other", async () => {
    const office = await new Office().begin("run_1", "run_2");
    const other = await new Office(office).begin();
    office.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await Promise.allSettled([office.submit(cancel("run_1")), office.submit(cancel("run_2"))]);
    await other.submit(cancel("run_1"));
    await office.clock.advance(50);
    expect(waiting(office.lane.durable)).toBe("");
  });

  test("the end of a turn that was written is told as soon as the log has been read", async () => {
    const office = await new Office().begin("run_1");
    await office.submit({ type: "start" });
    office.store.plan("append", 1, { kind: "lose-answer" });
    const ended = watch(office.submit(settle));
    await office.clock.advance(50);
    expect(ended).toEqual({ is: "answered", value: "recorded" });
  });

  test("what was decided behind it is written, and told when it is", async () => {
    const office = await new Office().begin("run_1");
    await office.submit({ type: "start" });
    const late = new Gate();
    office.store.plan("append", 1, { kind: "lose-answer" });
    office.store.plan("append", 2, { kind: "delay", until: late });
    const stopped = watch(office.submit(cancel("run_1")));
    await Promise.resolve();
    // The stop is on its way by now.
    const ended = watch(office.submit(settle));
    await office.clock.advance(50);
    expect([stopped.is, ended.is]).toEqual(["refused", "waiting"]);
    late.open();
    await settled();
    expect(ended).toEqual({ is: "answered", value: "recorded" });
    const types = await office.types();
    expect(types.filter((type) => type === "run.cancel_requested")).toHaveLength(1);
    expect(types.at(-1)).toBe("run.settled");
  });

  test("nothing is decided until the log has been read, and then all of it before anything begins", async () => {
    const office = await new Office().begin();
    office.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await office.submit(accept("run_1")).catch(() => {});
    office.told.length = 0;
    let lookedUp = 0;
    const received = [
      office.submit(accept("run_2")),
      office.submit(keyed("run_3"), async (command) => {
        lookedUp += 1;
        return command;
      }),
      office.submit(accept("run_4")),
    ];
    await settled();
    expect(office.told).toEqual([]);
    await office.clock.advance(50);
    expect(office.told[0]).toBe("caught up, with run_2");
    expect(await Promise.all(received)).toMatchObject([{ ahead: 0 }, { ahead: 1 }, { ahead: 2 }]);
    expect(lookedUp).toBe(1);
  });

  test("if nothing must be looked up, all that was received is decided before anything begins", async () => {
    const office = await new Office().begin();
    office.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await office.submit(accept("run_1")).catch(() => {});
    const received = [office.submit(accept("run_2")), office.submit(accept("run_3"))];
    await office.clock.advance(50);
    await Promise.all(received);
    expect(office.told).toContain("caught up, with run_2 run_3");
  });

  test("whoever is being looked up meanwhile is neither refused nor overtaken", async () => {
    const office = await new Office().begin();
    office.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    const found = new Gate();
    const lost = watch(office.submit(accept("run_1")));
    const slow = office.submit(keyed("run_2"), async (command) => {
      await found.opened;
      return command;
    });
    await settled();
    const behind = office.submit(accept("run_3"));
    await office.clock.advance(50);
    found.open();
    expect([await slow, await behind]).toMatchObject([{ ahead: 0 }, { ahead: 1 }]);
    expect(lost.is).toBe("refused");
  });

  test("what is received while the log cannot be read is refused in turn, but for stops", async () => {
    const office = await new Office().begin("run_1");
    office.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await office.submit(accept("run_2")).catch(() => {});
    office.store.plan("read", 1, { kind: "fail", code: "unavailable" });
    const refused = watch(office.submit(accept("run_3")));
    const stopped = watch(office.submit(cancel("run_1")));
    await office.clock.advance(50);
    expect(refused).toMatchObject({ is: "refused", value: { message: "The store could not read." } });
    expect(stopped).toMatchObject({ is: "refused", value: { message: `${CARRIED_OUT} The store could not read.` } });
    await office.clock.advance(100);
    expect(await office.types()).toEqual([...CREATED, "run.settled"]);
  });

  test("a stop that comes while the answer is being lost is not written before the log has been read", async () => {
    const office = await new Office().begin("run_1", "run_2");
    let lose = (_: Error): void => {};
    let sent = 0;
    const { append } = office.store;
    office.store.append = (batch) => {
      sent += 1;
      return sent > 1
        ? append(batch)
        : new Promise((_, reject) => {
            lose = reject;
          });
    };
    watch(office.submit(cancel("run_1")));
    await settled();
    lose(new Error("lost"));
    watch(office.submit(cancel("run_2")));
    await settled();
    expect(sent).toBe(1);
    await office.clock.advance(50);
    expect(waiting(office.lane.durable)).toBe("");
  });

  test("whoever waits for quiet waits until the log has been read, and what was kept is written", async () => {
    const office = await new Office().begin("run_1");
    office.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    await office.submit(accept("run_2")).catch(() => {});
    const quiet = watch(office.commit.quiet(office.lane));
    await settled();
    expect(quiet.is).toBe("waiting");
    await office.clock.advance(50);
    expect(quiet.is).toBe("answered");
    const late = new Gate();
    office.store.plan("append", 1, { kind: "fail", code: "unavailable" });
    office.store.plan("append", 2, { kind: "delay", until: late });
    await office.submit(cancel("run_1")).catch(() => {});
    const quieter = watch(office.commit.quiet(office.lane));
    await office.clock.advance(100);
    expect(quieter.is).toBe("waiting");
    late.open();
    await settled();
    expect(quieter.is).toBe("answered");
  });
});

describe("a house that leaves", () => {
  const CLOSING = { code: "shutting_down", message: "Belay is shutting down and accepts nothing new." };
  const UNANSWERED = {
    ...{ code: "unavailable", message: "Belay has closed before the store answered for session ses_1." },
  };

  test("tells whoever still waits what is known: what was sent may have been written, the rest was not", async () => {
    const office = await new Office().begin();
    const late = new Gate();
    office.store.plan("append", 1, { kind: "delay-answer", until: late });
    const sent = watch(office.submit(accept("run_1")));
    await settled();
    const decided = watch(office.submit(accept("run_2")));
    const lookedUp = watch(office.submit(keyed("run_3"), () => new Promise(() => {})));
    const quiet = watch(office.commit.quiet(office.lane));
    office.commit.leave([office.lane]);
    await settled();
    expect(sent).toMatchObject({ is: "refused", value: UNANSWERED });
    expect(decided).toMatchObject({ is: "refused", value: CLOSING });
    expect(lookedUp).toMatchObject({ is: "refused", value: CLOSING });
    expect(quiet.is).toBe("answered");
    late.open();
    await settled();
    await office.commit.quiet(office.lane);
    expect(await office.types()).toEqual(["session.created", "run.accepted"]);
  });

  test("tells whoever waits behind a write that nobody knows about that it may have been written", async () => {
    const office = await new Office().begin();
    office.store.plan("append", 1, { kind: "lose-answer" });
    await office.submit(accept("run_1")).catch(() => {});
    const behind = office.submit(accept("run_2"));
    office.commit.leave([office.lane]);
    await expect(behind).rejects.toMatchObject(UNANSWERED);
  });

  test.each<readonly [string, () => Promise<Appended>]>([
    ["a failure", () => Promise.reject(new Error("gone"))],
    ["that another was faster", () => Promise.resolve({ kind: "moved", head: 2 })],
    ["that another drives", () => Promise.resolve({ kind: "fenced" })],
  ])("does nothing about an answer that comes later: %s", async (_, answer) => {
    const office = await new Office().begin();
    const late = new Gate();
    office.log.append = () => late.opened.then(answer);
    watch(office.submit(accept("run_1")));
    await settled();
    office.commit.leave([office.lane]);
    const told = [...office.told];
    const reads = office.store.calls("read");
    late.open();
    await settled();
    expect([office.told, office.notices, office.clock.pending]).toEqual([told, [], []]);
    expect(office.store.calls("read")).toBe(reads);
  });
});
