// G6, the queue belongs to the user: edit, move, withdraw, steer, until the start and not after it.
import { describe, expect, test } from "vitest";
import {
  accept,
  cancelledBy,
  cancelRun,
  park,
  policy,
  running,
  runSettled,
  settleTurn,
} from "../../../test/fixtures/commands.ts";
import { type Given, given } from "../../testing/given.ts";
import { QUEUE_BYTES_MAX } from "../limits.ts";
import type { Command, QueuePlace } from "../model/command.ts";
import type { RunId } from "../model/ids.ts";

const queued = given(...running("run_live"), accept("run_a"), accept("run_b"), accept("run_c"));
const steered = queued.and({ type: "steer", runId: "run_b" });

const edit = (runId: RunId, text = "better") => ({ type: "edit", runId, prompt: { text } }) as const;
const move = (runId: RunId, to: QueuePlace) => ({ type: "move", runId, to }) as const;
const withdraw = (runId: RunId) => ({ type: "withdraw", runId, reason: policy }) as const;
const steer = (runId: RunId) => ({ type: "steer", runId }) as const;
const queueOf = (past: Given) => past.lane.queue.map((run) => run.id);

describe("every change of the queue", () => {
  const changes: readonly [string, (runId: RunId) => Command & { type: "edit" | "move" | "withdraw" | "steer" }][] = [
    ["edit", edit],
    ["move", (runId) => move(runId, "front")],
    ["withdraw", withdraw],
    ["steer", steer],
  ];

  test.each(changes)("%s: a run that has started is unchanged, and the receipt reports it", (_, change) => {
    queued.when(change("run_live")).then().answers({ kind: "started" });
  });

  test.each(changes)("%s: an unknown run changes nothing", (_, change) => {
    queued.when(change("run_x")).then().answers({ kind: "unknown" });
  });

  test.each(changes)("%s: a run that has settled changes nothing", (_, change) => {
    queued.and(settleTurn("turn_live.1")).when(change("run_live")).then().answers({ kind: "unknown" });
  });

  test.each(changes)("%s: the receipt has the position of the change", (_, change) => {
    queued.when(change("run_c")).answers({ kind: "changed", seq: 8 });
  });
});

describe("edit", () => {
  test("the new prompt replaces the old one, and everything else stays", () => {
    const prompt = { text: "better", data: [1] };
    const asked = given(accept("run_a", { key: "k", content: "c" }), accept("run_b")).when({
      type: "edit",
      runId: "run_a",
      prompt,
    });
    asked.then({ type: "run.edited", runId: "run_a", prompt });
    expect(asked.after.lane.queue[0]).toEqual({
      id: "run_a",
      prompt,
      delivery: "queue",
      acceptedAt: 2,
      key: "k",
      content: "c",
      bytes: 9,
    });
    expect(asked.after.lane.queue[1]?.prompt).toEqual({ text: "prompt of run_b" });
  });

  test("G33: an edit must fit beside the other prompts; the text it replaces does not count", () => {
    const text = "x".repeat(QUEUE_BYTES_MAX - 10);
    const past = given(
      ...running("run_live"),
      accept("run_s", { prompt: { text: "12" }, delivery: "steer" }),
      accept("run_a", { prompt: { text: "345" } }),
      accept("run_b", { prompt: { text } }),
    );
    past.when(edit("run_b", "x".repeat(QUEUE_BYTES_MAX - 5))).answers({ kind: "changed", seq: 8 });
    past
      .when(edit("run_b", "x".repeat(QUEUE_BYTES_MAX - 4)))
      .then()
      .answers({
        kind: "refused",
        code: "queue_full",
        message: "The prompts waiting in ses_1 would exceed 4194304 bytes.",
      });
    past.when(edit("run_a", "12345678")).then({ type: "run.edited", runId: "run_a", prompt: { text: "12345678" } });
    past.when(edit("run_a", "123456789")).then();
  });

  test("a shorter text makes room for the next prompt", () => {
    const text = "x".repeat(QUEUE_BYTES_MAX);
    const past = given(accept("run_a", { prompt: { text } }));
    past.when(accept("run_b")).then();
    const { queue } = past.and(edit("run_a", "short"), accept("run_b")).lane;
    expect(queue.map((run) => run.bytes)).toEqual([5, 15]);
  });

  test("G6: a waiting steer is edited, and the live run takes in the new text", () => {
    const asked = steered.when(edit("run_b"));
    asked.then({ type: "run.edited", runId: "run_b", prompt: { text: "better" } }).answers({ kind: "changed", seq: 9 });
    expect(asked.after.lane.steers).toMatchObject([{ id: "run_b", prompt: { text: "better" } }]);
  });
});

describe("move", () => {
  test.each([
    ["run_c", "front", 0, ["run_c", "run_a", "run_b"]],
    ["run_a", "back", 2, ["run_b", "run_c", "run_a"]],
    ["run_c", { before: "run_b" }, 1, ["run_a", "run_c", "run_b"]],
    ["run_a", { before: "run_c" }, 1, ["run_b", "run_a", "run_c"]],
    ["run_b", { before: "run_a" }, 0, ["run_b", "run_a", "run_c"]],
  ] as const)("%s to %j moves it to %i", (runId, to, index, order) => {
    const asked = queued.when(move(runId, to));
    asked.then({ type: "run.moved", runId, index }).answers({ kind: "changed", seq: 8 });
    expect(queueOf(asked.after)).toEqual(order);
  });

  test.each([
    ["run_a", "front"],
    ["run_c", "back"],
    ["run_a", { before: "run_b" }],
    ["run_b", { before: "run_c" }],
  ] as const)("%s to %j changes nothing", (runId, to) => {
    queued.when(move(runId, to)).then().answers({ kind: "unchanged" });
  });

  test("before itself changes nothing", () => {
    queued
      .when(move("run_b", { before: "run_b" }))
      .then()
      .answers({ kind: "unchanged" });
  });

  test.each(["run_x", "run_live"] as const)("before %s, which is not another queued run, is unknown", (before) => {
    queued.when(move("run_a", { before })).then().answers({ kind: "unknown" });
  });

  test("G6: a steer that is moved becomes a queued run at that place", () => {
    const asked = steered.when(move("run_b", "front"));
    asked.then({ type: "run.requeued", runId: "run_b" }, { type: "run.moved", runId: "run_b", index: 0 });
    expect(asked.after.lane.steers).toEqual([]);
    expect(queueOf(asked.after)[0]).toBe("run_b");
  });

  test("before a steer is unknown", () => {
    steered
      .when(move("run_a", { before: "run_b" }))
      .then()
      .answers({ kind: "unknown" });
  });
});

describe("withdraw", () => {
  test("G8: a withdrawn run has its own outcome, and leaves the queue", () => {
    const asked = queued.when(withdraw("run_b"));
    asked.then(runSettled("run_b", cancelledBy(policy)));
    expect(queueOf(asked.after)).toEqual(["run_a", "run_c"]);
  });

  test("a steer can be withdrawn until it is taken in", () => {
    const asked = steered.when(withdraw("run_b"));
    asked.then(runSettled("run_b", cancelledBy(policy))).answers({ kind: "changed", seq: 9 });
    expect(asked.after.lane.steers).toEqual([]);
    steered.and({ type: "take", turnId: "turn_live.1" }).when(withdraw("run_b")).then().answers({ kind: "unknown" });
  });

  test("another run does not become a steer", () => {
    steered.when(withdraw("run_live")).then().answers({ kind: "started" });
    steered.when(withdraw("run_x")).then().answers({ kind: "unknown" });
  });
});

describe("steer", () => {
  test("G6: a queued run becomes a steer of the live run", () => {
    const asked = queued.when(steer("run_b"));
    asked.then({ type: "run.steered", runId: "run_b" });
    expect(asked.after.lane.steers.map((run) => run.id)).toEqual(["run_b"]);
    expect(queueOf(asked.after)).toEqual(["run_a", "run_c"]);
  });

  test("a steer stays a steer", () => {
    steered.when(steer("run_b")).then().answers({ kind: "unchanged" });
  });

  test.each([
    ["no live run", given(accept("run_a"))],
    ["a run that is being stopped", queued.and(cancelRun("run_live"))],
    ["a parked run", queued.and(park)],
  ])("with %s it stays a queued run", (_, past) => {
    past.when(steer("run_a")).then().answers({ kind: "unchanged" });
  });

  test("steers are taken in order of acceptance, not in the order in which they became steers", () => {
    const past = queued.and(steer("run_c"), steer("run_a"));
    past.when({ type: "take", turnId: "turn_live.1" }).answers([
      { runId: "run_a", prompt: { text: "prompt of run_a" } },
      { runId: "run_c", prompt: { text: "prompt of run_c" } },
    ]);
  });
});

describe("clearing the queue", () => {
  const clear = { type: "cancel-session", reason: policy, only: "queue" } as const;

  test("G6: withdraws queued runs and steers at once, and stops nothing that runs", () => {
    const asked = steered.when(clear);
    const ends = ["run_a", "run_c", "run_b"] as const;
    asked.then(...ends.map((id) => runSettled(id, cancelledBy(policy)))).answers({
      kind: "withdrawn",
      runs: ends.map((runId) => ({ runId, receipt: { kind: "withdrawn" } })),
    });
    expect(steered.and(clear).lane.live?.phase).toBe("running");
  });

  test("G10: of an empty queue changes nothing", () => {
    given(...running("run_live"))
      .when(clear)
      .then()
      .answers({ kind: "idle", runs: [] });
  });

  test("G7: withdraws a prompt that it names and that arrives later", () => {
    const named = { ...clear, prompts: ["k"], actor: "ann" };
    const asked = given(...running("run_live")).when(named);
    asked.answers({ kind: "withdrawn", runs: [], prompts: ["k"] });
  });
});
