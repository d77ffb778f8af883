// A store that does not answer an append: how long its callers wait, and the effect of a late answer.
import { describe, expect, test } from "vitest";
import {
  accept,
  cancel,
  cancelSession,
  keyed,
  settleTurn,
  Writer,
  waiting,
  watch,
} from "../../../test/fixtures/commit.ts";
import { STOP_UNRECORDED } from "../../core/errors.ts";
import { STORE_WAIT_MS } from "../../core/limits.ts";
import type { Appended } from "../../ports/store.ts";
import { Gate } from "../../testing/gate.ts";
import { settled } from "../../testing/manual-clock.ts";

const NO_ANSWER = { code: "unavailable", message: "The store has not answered within 5 seconds." };
const STOPPED = { code: "unavailable", hint: STOP_UNRECORDED };

/** The next append hangs. The gate opens with its answer; the batch is written if that is "written". */
function hang(writer: Writer): Gate<Appended | Error | "written"> {
  const late = new Gate<Appended | Error | "written">();
  const append = writer.log.append.bind(writer.log);
  writer.log.append = async (batch) => {
    writer.log.append = append;
    const answer = await late.opened;
    if (answer instanceof Error) throw answer;
    return answer === "written" ? append(batch) : answer;
  };
  return late;
}

/** A writer whose batch has timed out, and whose log cannot be read yet; `read` opens the log. */
async function overdue(submit: (writer: Writer) => void, ...runs: readonly ("run_1" | "run_2")[]) {
  const writer = await new Writer().begin(...runs);
  const late = hang(writer);
  submit(writer);
  const read = new Gate();
  writer.store.always("read", { kind: "delay", until: read });
  await writer.clock.advance(STORE_WAIT_MS);
  writer.reported.length = 0;
  return { writer, late, read };
}

describe("an append without an answer", () => {
  test("has an idle timer of 5 s, which ends with its answer", async () => {
    const writer = await new Writer().begin();
    const late = hang(writer);
    writer.submit(accept("run_1"));
    await settled();
    expect(writer.clock.pending).toEqual([{ inMs: STORE_WAIT_MS, idle: true }]);
    late.open("written");
    await settled();
    expect(writer.clock.pending).toEqual([]);
  });

  test("times out after 5 s: then every caller gets an error, and stops are kept", async () => {
    const writer = await new Writer().begin("run_1", "run_2");
    await writer.submit({ type: "start" });
    hang(writer);
    const sent = [writer.submit(accept("run_3")), writer.submit(cancel("run_2"))].map(watch);
    await settled();
    const behind = [
      writer.submit(accept("run_4")),
      writer.commit.barrier(writer.lane),
      writer.submit(cancelSession),
      writer.submit(settleTurn),
    ].map(watch);
    await writer.clock.advance(STORE_WAIT_MS - 1);
    expect([...sent, ...behind].map(({ is }) => is)).toEqual(Array(6).fill("waiting"));
    await writer.clock.advance(1);
    expect(sent).toMatchObject([
      { is: "refused", value: NO_ANSWER },
      { is: "refused", value: STOPPED },
    ]);
    expect(behind).toMatchObject([
      { is: "refused", value: NO_ANSWER },
      { is: "refused", value: NO_ANSWER },
      { is: "refused", value: STOPPED },
      { is: "waiting" },
    ]);
    expect(writer.notices).toMatchObject([{ type: "store", code: "unavailable" }]);
  });

  test("of several sessions shares one timer with the others, and each times out separately", async () => {
    const writer = await new Writer().begin();
    const other = await new Writer().begin();
    // One `Commit` for both sessions, as in an engine.
    const lane = Object.assign(other.lane, { id: "ses_2" });
    const append = writer.log.append.bind(writer.log);
    writer.log.append = () => new Promise(() => {});
    const first = watch(writer.submit(accept("run_1")));
    await writer.clock.advance(2_000);
    const second = watch(writer.commit.submit(lane, accept("run_2")));
    await settled();
    expect(writer.clock.pending).toEqual([{ inMs: 3_000, idle: true }]);
    await writer.clock.advance(3_000);
    expect([first.is, second.is]).toEqual(["refused", "waiting"]);
    await writer.clock.advance(2_000);
    expect(second).toMatchObject({ is: "refused", value: NO_ANSWER });
    writer.log.append = append;
  });

  test("keeps what it may have written decided until the log has been read, so that a stop covers it", async () => {
    const { writer } = await overdue((one) => watch(one.submit(accept("run_1"))));
    expect(waiting(writer.lane.decided)).toBe("run_1");
    await expect(writer.submit(cancelSession)).rejects.toMatchObject(STOPPED);
    expect(writer.covered).toEqual([{ runs: ["run_1"], work: [], processes: [] }]);
  });
});

describe("the late answer of an append that timed out, before the log has been read:", () => {
  test("`appended`: it is recorded, kept commands are sent, and the health is `well`", async () => {
    const { writer, late, read } = await overdue((one) => watch(one.submit(accept("run_2"))), "run_1");
    const stop = watch(writer.submit(cancel("run_1")));
    late.open("written");
    await settled();
    expect(stop).toMatchObject({ is: "refused", value: STOPPED });
    expect(waiting(writer.lane.durable)).toBe("run_2");
    expect(writer.lane.health.kind).toBe("well");
    expect(writer.reported.slice(1)).toEqual(["recorded run.accepted", "recorded run.settled", "rested"]);
    read.open();
    await writer.clock.advance(STORE_WAIT_MS);
    expect(await writer.types()).toEqual(["session.created", "run.accepted", "run.accepted", "run.settled"]);
    expect(await writer.submit(accept("run_9"))).toMatchObject({ kind: "accepted", ahead: 1 });
  });

  test("`appended`: the end of work in it is resolved", async () => {
    const writer = await new Writer().begin("run_1");
    await writer.submit({ type: "start" });
    const late = hang(writer);
    const ended = watch(writer.submit(settleTurn));
    writer.store.always("read", { kind: "delay", until: new Gate() });
    await writer.clock.advance(2 * STORE_WAIT_MS);
    expect(ended.is).toBe("waiting");
    late.open("written");
    await settled();
    expect(ended).toEqual({ is: "answered", value: "recorded" });
  });

  test("`moved`: it is decided again as a whole, on the current log, and written once", async () => {
    const submit = (one: Writer): void => void [accept("run_2"), cancel("run_1")].map((it) => watch(one.submit(it)));
    const { writer, late, read } = await overdue(submit, "run_1");
    writer.store.heal();
    await new Writer(writer).begin("run_9");
    late.open({ kind: "moved", head: 3 });
    read.open();
    await writer.clock.advance(STORE_WAIT_MS);
    // The caller of `run_2` got `unavailable`: it may or may not have been written.
    expect(waiting(writer.lane.durable)).toBe("run_9 run_2");
    expect((await writer.types()).slice(3)).toEqual(["run.accepted", "run.settled"]);
    expect(writer.lane.health.kind).toBe("well");
  });

  test("`taken`: it is decided again with the taken keys, and written once", async () => {
    const commands = [keyed("run_2", "k"), accept("run_3"), cancel("run_1")];
    const { writer, late, read } = await overdue((one) => void commands.map((it) => watch(one.submit(it))), "run_1");
    late.open({ kind: "taken", runs: [{ key: "k", runId: "run_0", acceptedAt: 1, content: "k" }] });
    read.open();
    await writer.clock.advance(STORE_WAIT_MS);
    expect(waiting(writer.lane.durable)).toBe("run_3");
    expect((await writer.types()).slice(2)).toEqual(["run.accepted", "run.settled"]);
  });

  test("`fenced`: the session is lost, and its stops are handed over", async () => {
    const submit = (one: Writer): void => void [accept("run_2"), cancel("run_1")].map((it) => watch(one.submit(it)));
    const { writer, late } = await overdue(submit, "run_1");
    late.open({ kind: "fenced" });
    await settled();
    expect(writer.reported).toEqual(["fenced"]);
    expect(writer.kept).toEqual([cancel("run_1")]);
    expect(writer.clock.pending).toEqual([]);
  });

  test("an error: whether it was written stays unknown, and the log is read", async () => {
    const submit = (one: Writer): void => void [accept("run_2"), cancel("run_1")].map((it) => watch(one.submit(it)));
    const { writer, late, read } = await overdue(submit, "run_1");
    late.open(new Error("The connection was reset."));
    await settled();
    expect(writer.lane.health.kind).toBe("unknown");
    read.open();
    await writer.clock.advance(STORE_WAIT_MS);
    expect(await writer.types()).toEqual(["session.created", "run.accepted", "run.settled"]);
    expect(writer.lane.health.kind).toBe("well");
  });
});

describe("the log has been read, and the append is still without an answer:", () => {
  test("written commands are resolved and not decided again, and the answer changes nothing", async () => {
    const writer = await new Writer().begin("run_1");
    await writer.submit({ type: "start" });
    const late = new Gate();
    writer.store.plan("append", 1, { kind: "delay-answer", until: late });
    const ended = watch(writer.submit(settleTurn));
    await writer.clock.advance(STORE_WAIT_MS);
    expect(ended.is).toBe("waiting");
    await writer.clock.advance(50);
    expect(ended).toEqual({ is: "answered", value: "recorded" });
    const types = await writer.types();
    late.open();
    await settled();
    expect(await writer.types()).toEqual(types);
    expect(await writer.submit(accept("run_2"))).toMatchObject({ kind: "accepted", ahead: 0 });
  });

  test("unwritten commands are sent again as a whole, and the old batch is refused when it arrives", async () => {
    const writer = await new Writer().begin("run_1");
    const late = hang(writer);
    const prompt = watch(writer.submit(accept("run_2")));
    watch(writer.submit(cancel("run_1")));
    await writer.clock.advance(STORE_WAIT_MS + 50);
    expect(prompt).toMatchObject({ is: "refused", value: NO_ANSWER });
    const types = ["session.created", "run.accepted", "run.accepted", "run.settled"];
    expect(await writer.types()).toEqual(types);
    late.open("written");
    await settled();
    expect(await writer.types()).toEqual(types);
    expect(await writer.submit(accept("run_3"))).toMatchObject({ kind: "accepted", ahead: 1 });
  });

  test("if the old batch arrives first, the new one is decided again, and nothing is written twice", async () => {
    const writer = await new Writer().begin("run_1");
    const late = hang(writer);
    [accept("run_2"), cancel("run_1")].map((command) => watch(writer.submit(command)));
    const second = new Gate();
    writer.store.plan("append", 2, { kind: "delay", until: second });
    await writer.clock.advance(STORE_WAIT_MS + 50);
    late.open("written");
    await settled();
    second.open();
    await settled();
    expect(waiting(writer.lane.durable)).toBe("run_2");
    expect((await writer.types()).slice(2)).toEqual(["run.accepted", "run.settled"]);
    expect(await writer.submit(accept("run_3"))).toMatchObject({ kind: "accepted", ahead: 1 });
  });

  test("if the old batch arrives first and the log cannot be read at once, nothing is decided twice", async () => {
    const writer = await new Writer().begin();
    const late = hang(writer);
    [accept("run_1"), cancelSession].map((command) => watch(writer.submit(command)));
    const second = new Gate();
    writer.store.plan("append", 2, { kind: "delay", until: second });
    writer.store.plan("read", 2, { kind: "fail", code: "unavailable" });
    await writer.clock.advance(STORE_WAIT_MS + 50);
    late.open("written");
    await settled();
    second.open();
    await writer.clock.advance(STORE_WAIT_MS);
    expect((await writer.types()).slice(1)).toEqual(["run.accepted", "session.cancel_requested", "run.settled"]);
    expect(writer.notices).toMatchObject([{ code: "unavailable" }, { code: "unavailable" }]);
    expect(await writer.submit(accept("run_2"))).toMatchObject({ kind: "accepted", ahead: 0 });
  });

  test("if the second attempt is refused it stays decided: the old batch may be written, and is found", async () => {
    const writer = await new Writer().begin();
    const late = hang(writer);
    watch(writer.submit(accept("run_1")));
    writer.store.plan("append", 2, { kind: "fail", code: "store_full" });
    await writer.clock.advance(STORE_WAIT_MS + 50);
    expect(waiting(writer.lane.decided)).toBe("run_1");
    late.open("written");
    await writer.clock.advance(STORE_WAIT_MS);
    expect(waiting(writer.lane.durable)).toBe("run_1");
    expect(await writer.submit(accept("run_2"))).toMatchObject({ kind: "accepted", ahead: 1 });
  });

  test("G7: a stop covers what an old batch has written although the new one is refused", async () => {
    const writer = await new Writer().begin();
    const late = hang(writer);
    watch(writer.submit(accept("run_1")));
    const second = new Gate();
    const refused = { kind: "fail", code: "store_full" } as const;
    writer.store.plan("append", 2, refused);
    const append = writer.store.append.bind(writer.store);
    let sendings = 1;
    writer.store.append = async (batch) => {
      sendings += 1;
      if (sendings === 2) await second.opened;
      return append(batch);
    };
    await writer.clock.advance(STORE_WAIT_MS + 50);
    late.open("written");
    await settled();
    second.open();
    await settled();
    watch(writer.submit(cancelSession));
    expect(writer.covered).toEqual([{ runs: ["run_1"], work: [], processes: [] }]);
    await writer.clock.advance(STORE_WAIT_MS);
    expect((await writer.types()).slice(1)).toEqual(["run.accepted", "session.cancel_requested", "run.settled"]);
  });

  test("G7: an old batch is found as it was sent, although its order has changed since", async () => {
    const writer = await new Writer().begin("run_1");
    await writer.submit({ type: "start" });
    await writer.submit({ type: "call", callId: "call_1.1", name: "look", input: null });
    const late = hang(writer);
    const [ended, stopped, prompt] = [settleTurn, cancelSession, accept("run_2")].map((one) =>
      watch(writer.submit(one)),
    );
    writer.store.plan("append", 2, { kind: "fail", code: "store_full" });
    await writer.clock.advance(STORE_WAIT_MS + 50);
    expect([ended?.is, stopped?.is, prompt?.is]).toEqual(["waiting", "refused", "refused"]);
    late.open("written");
    await settled();
    const types = await writer.types();
    await writer.clock.advance(STORE_WAIT_MS);
    // Decided again, the stop would cover the later prompt, and the store would refuse to accept that twice.
    expect(await writer.types()).toEqual(types);
    expect(waiting(writer.lane.durable)).toBe("run_2");
    expect(ended).toEqual({ is: "answered", value: "recorded" });
    expect(await writer.submit(accept("run_3"))).toMatchObject({ kind: "accepted", ahead: 2 });
  });

  test("G11: a stop of a prompt in doubt holds although the batch that was sent again is lost too", async () => {
    for (const code of ["unavailable", "store_full"] as const) {
      const writer = await new Writer().begin();
      const late = hang(writer);
      watch(writer.submit(accept("run_1")));
      await writer.clock.advance(STORE_WAIT_MS);
      watch(writer.submit(cancel("run_1")));
      writer.store.plan("append", 2, { kind: "fail", code });
      await writer.clock.advance(50);
      expect(writer.store.calls("append")).toBeGreaterThan(2);
      late.open("written");
      await writer.clock.advance(STORE_WAIT_MS);
      expect([code, waiting(writer.lane.decided), waiting(writer.lane.durable)]).toEqual([code, "", ""]);
      expect(await writer.types()).toEqual(["session.created", "run.accepted", "run.settled"]);
    }
  });

  test("a stop that covered a prompt in doubt stops it, whether that is written before it or after it", async () => {
    for (const lands of ["before", "after", "never"]) {
      const writer = await new Writer().begin();
      const late = hang(writer);
      watch(writer.submit(accept("run_1")));
      await writer.clock.advance(STORE_WAIT_MS);
      await expect(writer.submit(cancelSession)).rejects.toMatchObject(STOPPED);
      expect(writer.covered).toEqual([{ runs: ["run_1"], work: [], processes: [] }]);
      if (lands === "before") late.open("written");
      await writer.clock.advance(50);
      if (lands === "after") late.open("written");
      await writer.clock.advance(STORE_WAIT_MS);
      await writer.submit(accept("run_2"));
      expect([lands, waiting(writer.lane.durable)]).toEqual([lands, "run_2"]);
    }
  });
});
