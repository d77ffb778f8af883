// Why a session is busy, for each of its states.
import { describe, expect, test } from "vitest";
import { deaf, gate, openTestBelay, waits } from "../../test/fixtures/belay.ts";
import {
  accept,
  ask,
  beginProcess,
  call,
  cancelRun,
  close,
  park,
  plainQuestion,
  running,
  settleTurn,
} from "../../test/fixtures/commands.ts";
import type { CallId, RunId } from "../core/model/ids.ts";
import { systemClock } from "../system/system-clock.ts";
import { type Given, given } from "../testing/given.ts";
import { explain } from "./explain.ts";
import { SessionState } from "./log/session-state.ts";
import { LiveCall } from "./work/live-call.ts";
import type { WorkHost } from "./work/run-work.ts";

test("G36: an idle session is reported as idle, and that a cancel would change nothing", {
  meta: { id: "G36/idle-session-explained" },
}, async () => {
  const { belay } = await openTestBelay();
  const session = await belay.createSession();
  expect(await session.explain()).toEqual({
    sessionId: session.id,
    asOf: 1,
    busy: false,
    live: undefined,
    queue: [],
    steers: [],
    processes: [],
    driver: expect.stringMatching(/^wrk_/),
    summary: "Idle. A cancel would change nothing.",
  });
});

test("G36: a live run is named with its calls, its queue and its steers", async () => {
  const called = gate();
  const { belay, began } = await openTestBelay({
    work: async (turn) => {
      await turn.call("build", null, ({ signal }) => {
        called.open();
        return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      });
      return "end";
    },
  });
  const session = await belay.createSession();
  const run = session.prompt("work");
  await began("work");
  await called.passed;
  const queued = session.prompt("later");
  const steer = session.prompt("left", { delivery: "steer" });
  await Promise.all([queued.accepted, steer.accepted]);
  const said = await session.explain();
  expect(said).toMatchObject({
    busy: true,
    live: {
      runId: run.id,
      phase: "running",
      reason: undefined,
      attempt: 1,
      calls: [{ name: "build", phase: "running" }],
    },
    queue: [{ runId: queued.id, text: "later" }],
    steers: [{ runId: steer.id, text: "left" }],
  });
  expect(said.summary).toBe(`${run.id} is running; calls: build. A cancel would stop it. 1 queued behind it.`);
  await session.cancel();
});

test("G36: a run that is being stopped has the position, reason and remaining work of its stop", async () => {
  const { belay, began } = await openTestBelay({ live: deaf }, { graceMs: 60_000 });
  const session = await belay.createSession();
  const run = session.prompt("live");
  await began("live");
  const receipt = await run.cancel({ reason: "enough" });
  const since = receipt.kind === "stopping" ? receipt.since : 0;
  const said = await session.explain();
  expect(said.live).toMatchObject({ phase: "stopping", reason: { kind: "user", note: "enough" } });
  expect(said.summary).toBe(`${run.id} has been stopping since ${since}; it waits for its turn.`);
});

test("G36: a session that waits for a slot, and one that is closed, are reported as such", async () => {
  const { belay, began } = await openTestBelay({ live: waits }, { liveRunsMax: 1 });
  const [one, two] = [await belay.createSession(), await belay.createSession()];
  one.prompt("live");
  await began("live");
  await two.prompt("waits for the other").accepted;
  expect((await two.explain()).summary).toBe("Not running: 1 queued, waiting for a free slot.");
  await two.close();
  expect((await two.explain()).summary).toBe("Closed.");
  await one.cancel();
});

describe("G36: in one sentence", () => {
  /** The summary by the worker that drives it, or by another one. */
  function said({ lane }: Given, by: "driver" | "other" = "driver") {
    const live = new SessionState("ses_1");
    live.durable = lane;
    live.epoch = by === "driver" ? 1 : undefined;
    return explain(live, { worker: "wrk_1", processes: [], times: new Map(), mode: undefined, hasSlot: true });
  }
  const live = given(...running("run_a"));
  const calling = live.and(call("call_a.1", "build"), call("call_a.2", "test"));
  const asking = live.and(ask("turn_a.1", plainQuestion));
  const later = [accept("run_b"), accept("run_c")];
  const ending = calling.and(settleTurn("turn_a.1"));

  test.each<readonly [what: string, past: Given, sentence: string]>([
    ["idle", given(), "Idle. A cancel would change nothing."],
    ["with a process", given(beginProcess()), "Idle. A background process is running. A cancel would stop it all."],
    [
      "with processes",
      given(beginProcess(), beginProcess()),
      "Idle. 2 background processes are running. A cancel would stop it all.",
    ],
    ["closed", given(close()), "Closed."],
    [
      "closed, with a process that is being stopped",
      given(beginProcess(), close()),
      "Closed. A background process is running. A cancel would stop it all.",
    ],
    ["waiting for a slot", given(...later), "Not running: 2 queued, waiting for a free slot."],
    ["running", live, "run_a is running. A cancel would stop it."],
    [
      "running, with others behind it",
      live.and(...later),
      "run_a is running. A cancel would stop it. 2 queued behind it.",
    ],
    ["with calls", calling, "run_a is running; calls: build, test. A cancel would stop it."],
    ["with a question", asking, "run_a is running; it waits for an answer (ask_a.1). A cancel would stop it."],
    [
      "with questions",
      asking.and(ask("turn_a.1", plainQuestion)),
      "run_a is running; it waits for 2 answers (ask_a.1, ask_a.2). A cancel would stop it.",
    ],
    [
      "stopping, with its turn left",
      live.and(cancelRun("run_a")),
      "run_a has been stopping since 5; it waits for its turn.",
    ],
    [
      "stopping, with calls left",
      calling.and(accept("run_b"), cancelRun("run_a")),
      "run_a has been stopping since 8; it waits for build, test. 1 queued behind it.",
    ],
    ["ending", ending.and(accept("run_b")), "run_a has ended and waits for build, test. 1 queued behind it."],
    ["parked", live.and(park, accept("run_b")), "run_a is parked until a worker recovers it. 1 queued behind it."],
  ])("%s", (_, past, sentence) => {
    const { live, queue } = past.lane;
    const busy = live !== undefined || queue.length > 0;
    expect(said(past)).toMatchObject({ summary: sentence, driver: "wrk_1", busy });
  });

  test("a worker that does not drive it reports that another one does", () => {
    const other = "(driven by another worker)";
    expect(said(live, "other")).toMatchObject({
      ...{ summary: `run_a is running ${other}. A cancel would stop it.`, driver: undefined },
    });
    expect(said(live.and(cancelRun("run_a")), "other").summary).toContain(`stopping since 5 ${other}; it waits`);
    expect(said(ending, "other").summary).toBe(`run_a has ended and waits for build, test ${other}.`);
  });
});

test("G36: the worker that runs a call reports what the call waits for before it begins", () => {
  const lane = new SessionState("ses_1");
  lane.durable = given(...running("run_a"), call("call_a.1"), call("call_a.2")).lane;
  const request = { name: "tool", input: null, execute: () => 1 };
  const make = (id: CallId): LiveCall => new LiveCall({ clock: systemClock } as WorkHost, lane, id, "tool", request);
  lane.works.push(make("call_a.1"), Object.assign(make("call_a.2"), { waits: "slot" }));
  const { live } = explain(lane, { worker: "wrk_1", processes: [], times: new Map(), mode: undefined, hasSlot: true });
  expect(live?.calls.map((one) => one.waits)).toEqual([undefined, "slot"]);
});

test("G36: all live work has its time, even from a worker that runs none of it", () => {
  const lane = new SessionState("ses_1");
  const past = given(...running("run_a"), call("call_a.1", "build"), ask("turn_a.1", plainQuestion));
  lane.durable = past.and(accept("run_b", { prompt: { text: "later" } })).lane;
  const times = new Map<RunId | CallId, number>([
    ["run_a", 7],
    ["call_a.1", 8],
  ]);
  expect(explain(lane, { worker: "wrk_1", processes: [], times, mode: "ask", hasSlot: true })).toMatchObject({
    ...{ asOf: 7, busy: true, queue: [{ runId: "run_b", text: "later" }], mode: "ask" },
    live: {
      ...{ runId: "run_a", phase: "running", reason: undefined, turn: "turn_a.1", since: 7 },
      calls: [{ callId: "call_a.1", name: "build", phase: "running", waits: undefined, since: 8 }],
      questions: [{ id: "ask_a.1", about: plainQuestion }],
    },
  });
});

test("G36: a recovered run that waits for a slot is reported as waiting", () => {
  const lane = new SessionState("ses_1");
  lane.durable = given(...running("run_a")).lane;
  lane.epoch = 1;
  const beside = { worker: "wrk_1", processes: [], times: new Map(), mode: undefined } as const;
  const waits = "run_a is waiting for a free slot to continue. A cancel would stop it.";
  expect(explain(lane, { ...beside, hasSlot: false }).summary).toBe(waits);
  expect(explain(lane, { ...beside, hasSlot: true }).summary).not.toBe(waits);
});
