// Accepting, starting and taking in: what a lane does with prompts.
import { describe, expect, test } from "vitest";
import {
  accept,
  cancelledBy,
  cancelRequested,
  cancelRun,
  cancelSession,
  close,
  completed,
  park,
  policy,
  requeued,
  running,
  runSettled,
  settleTurn,
  start,
  taken,
  turnRequested,
  user,
} from "../../../test/fixtures/commands.ts";
import { given, givenNoSession } from "../../testing/given.ts";
import { QUEUE_BYTES_MAX, QUEUE_RUNS_MAX } from "../limits.ts";
import type { Accept, Command } from "../model/command.ts";
import type { RunId } from "../model/ids.ts";
import { keep } from "../model/memo.ts";
import { decide } from "./decide.ts";

const accepted = (command: Accept) => {
  const { type: _, earlier: __, ...rest } = command;
  return { type: "run.accepted", ...rest } as const;
};
const steer = (runId: RunId): Accept => accept(runId, { delivery: "steer" });
const interrupt = (runId: RunId): Accept => accept(runId, { delivery: "interrupt" });
const receipt = { kind: "accepted", joined: "queue", repeated: false } as const;

describe("create", () => {
  test("a session is created once, with the first event of its log", () => {
    givenNoSession()
      .when({ type: "create" })
      .then({ type: "session.created", sessionId: "ses_1" })
      .answers({ kind: "created", seq: 1 });
  });

  test("its title is kept", () => {
    givenNoSession()
      .when({ type: "create", title: "Chores" })
      .then({ type: "session.created", sessionId: "ses_1", title: "Chores" });
  });

  test("its directory is kept, in its log and in its lane", () => {
    const made = givenNoSession().and({ type: "create", cwd: "/srv/shop" });
    expect(made.events).toEqual([{ type: "session.created", sessionId: "ses_1", cwd: "/srv/shop" }]);
    expect(made.and(accept("run_a"), cancelSession(), close()).lane.cwd).toBe("/srv/shop");
    expect(given(accept("run_a")).lane.cwd).toBeUndefined();
    made.when({ type: "create", cwd: "/elsewhere" }).then().answers({ kind: "existed", seq: 1 });
  });

  test("creating it again changes nothing, and the answer is `existed`", () => {
    given(accept("run_a")).when({ type: "create", title: "Other" }).then().answers({ kind: "existed", seq: 1 });
  });

  test("a closed session is not created anew", () => {
    given(close()).when({ type: "create" }).then().answers({ kind: "existed", seq: 1 });
  });
});

describe("accept", () => {
  test("G1: a prompt is recorded whole, and the receipt has its position", () => {
    const prompt = { text: "hello", data: { model: "small" } };
    const command = accept("run_a", { prompt, key: "k", content: "digest" });
    given()
      .when(command)
      .then({ type: "run.accepted", runId: "run_a", prompt, delivery: "queue", key: "k", content: "digest" })
      .answers({ ...receipt, runId: "run_a", seq: 2, ahead: 0 });
  });

  test("the store's knowledge of the key is not recorded", () => {
    const earlier = { runId: "run_z", acceptedAt: 2, content: undefined } as const;
    const { events } = decide(given().lane, accept("run_a", { earlier }));
    expect(events).toEqual([]);
  });

  test("the receipt counts the runs before it, the live one included", () => {
    given(...running("run_a"), accept("run_b"))
      .when(accept("run_c"))
      .then(accepted(accept("run_c")))
      .answers({ ...receipt, runId: "run_c", seq: 6, ahead: 2 });
    given(accept("run_a"), accept("run_b"))
      .when(accept("run_c"))
      .answers({ ...receipt, runId: "run_c", seq: 4, ahead: 2 });
    given(...running("run_a"), park)
      .when(accept("run_b"))
      .answers({ ...receipt, runId: "run_b", seq: 7, ahead: 1 });
  });

  test("G3: a session that was never created refuses, and leaves no record", () => {
    givenNoSession()
      .when(accept("run_a"))
      .then()
      .answers({ kind: "refused", code: "not_found", message: "There is no session ses_1." });
  });

  test("G3: a closed session refuses, and leaves no record", () => {
    given(close())
      .when(accept("run_a"))
      .then()
      .answers({ kind: "refused", code: "closed", message: "Session ses_1 is closed." });
  });

  test("G33: the queue is bounded in runs, and steers count", {
    meta: { id: "G33/queue-bounded-steers-count" },
  }, () => {
    const full = given(...running("run_live"), steer("run_s"), ...manyRuns(QUEUE_RUNS_MAX - 2));
    full.when(accept("run_last")).then(accepted(accept("run_last")));
    for (const delivery of ["queue", "steer", "interrupt"] as const) {
      full
        .and(accept("run_last"))
        .when(accept("run_over", { delivery }))
        .then()
        .answers({ kind: "refused", code: "queue_full", message: "100 runs are waiting in ses_1; that is the limit." });
    }
  });

  test("G33: the queue is bounded in bytes, and steers count", () => {
    const half = "x".repeat(QUEUE_BYTES_MAX / 2);
    const rest = "x".repeat(QUEUE_BYTES_MAX / 2 - 1);
    const waiting = given(
      ...running("run_live"),
      accept("run_a", { prompt: { text: half } }),
      accept("run_b", { prompt: { text: rest }, delivery: "steer" }),
    );
    waiting.when(accept("run_c", { prompt: { text: "1" } })).then(accepted(accept("run_c", { prompt: { text: "1" } })));
    waiting
      .when(accept("run_c", { prompt: { text: "12" } }))
      .then()
      .answers({
        kind: "refused",
        code: "queue_full",
        message: "The prompts waiting in ses_1 would exceed 4194304 bytes.",
      });
  });

  test("the prompt of the live run does not count towards the queue's limit", () => {
    const text = "x".repeat(QUEUE_BYTES_MAX);
    const big = accept("run_b", { prompt: { text } });
    given(accept("run_a", { prompt: { text } }), start)
      .when(big)
      .then(accepted(big));
  });
});

describe("idempotency", () => {
  const first = accept("run_a", { key: "k", content: "same" });
  const again = accept("run_b", { key: "k", content: "same" });

  test("G2: the same key and content give the same receipt, and no second run", () => {
    given(first)
      .when(again)
      .then()
      .answers({ ...receipt, runId: "run_a", seq: 2, ahead: 0, repeated: true });
  });

  test("G2: the same run id gives the same receipt", () => {
    given(accept("run_a"))
      .when(accept("run_a"))
      .then()
      .answers({
        ...receipt,
        runId: "run_a",
        seq: 2,
        ahead: 0,
        repeated: true,
      });
  });

  test("G2: the same key with other content is a conflict", () => {
    given(first)
      .when({ ...again, content: "other" })
      .then()
      .answers({
        kind: "refused",
        code: "conflict",
        message: "This idempotency key was used for a different prompt.",
      });
  });

  test("prompts without keys are never duplicates of each other", () => {
    const { lane } = given(accept("run_a", { content: "same" }));
    const { events, answer } = decide(lane, accept("run_b", { content: "same" }));
    expect(events).toMatchObject([{ type: "run.accepted", runId: "run_b" }]);
    expect(answer).toEqual({ ...receipt, runId: "run_b", seq: 3, ahead: 1 });
  });

  test("another key is another run", () => {
    const other = accept("run_b", { key: "l", content: "same" });
    given(first).when(other).then(accepted(other));
  });

  test("G2: the key is known while its run is live", () => {
    given(first, start)
      .when(again)
      .then()
      .answers({ ...receipt, runId: "run_a", seq: 2, ahead: 0, repeated: true });
  });

  test("a repeated request gets the current number of runs before its run", () => {
    const behind = given(...running("run_live"), accept("run_x"), first);
    behind
      .when(again)
      .then()
      .answers({ ...receipt, runId: "run_a", seq: 6, ahead: 2, repeated: true });
    given(accept("run_x"), first)
      .when(again)
      .answers({
        ...receipt,
        runId: "run_a",
        seq: 3,
        ahead: 1,
        repeated: true,
      });
  });

  test("G2: a repeated steer gets the receipt of the first", () => {
    const once = given(...running("run_live")).when({ ...first, delivery: "steer" });
    once.answers({ ...receipt, joined: "steer", runId: "run_a", seq: 5, ahead: 1 });
    once.after
      .when({ ...again, delivery: "steer" })
      .then()
      .answers({ ...receipt, joined: "steer", runId: "run_a", seq: 5, ahead: 1, repeated: true });
  });

  test("G2: a repeated request gets the state of its run, not of a waiting steer", () => {
    given(...running("run_live"), steer("run_s"), first)
      .when(again)
      .then()
      .answers({ ...receipt, runId: "run_a", seq: 6, ahead: 1, repeated: true });
  });

  test("G2: a run that settled long ago still has its key, even in a closed session", () => {
    const earlier = { runId: "run_z", acceptedAt: 7, content: "same" } as const;
    for (const past of [given(), given(close())]) {
      past
        .when({ ...again, earlier })
        .then()
        .answers({ ...receipt, runId: "run_z", seq: 7, ahead: 0, repeated: true });
    }
    given()
      .when({ ...again, earlier: { ...earlier, content: "other" } })
      .then()
      .answers({
        kind: "refused",
        code: "conflict",
        message: "This idempotency key was used for a different prompt.",
      });
  });

  test("the lane takes precedence over what the store remembers", () => {
    const earlier = { runId: "run_z", acceptedAt: 7, content: "other" } as const;
    given(first)
      .when({ ...again, earlier })
      .answers({ ...receipt, runId: "run_a", seq: 2, ahead: 0, repeated: true });
  });
});

describe("deliveries", () => {
  test("G5: a steer waits for the live run's next turn", () => {
    const past = given(...running("run_a"), accept("run_q"));
    const asked = past.when(steer("run_s"));
    asked.then(accepted(steer("run_s"))).answers({ ...receipt, joined: "steer", runId: "run_s", seq: 6, ahead: 1 });
    expect(asked.after.lane.steers.map((run) => run.id)).toEqual(["run_s"]);
    expect(asked.after.lane.queue.map((run) => run.id)).toEqual(["run_q"]);
  });

  test.each([
    ["an idle session", given()],
    ["a run that is being stopped", given(...running("run_a"), cancelRun("run_a"))],
    ["a parked run", given(...running("run_a"), park)],
  ])("G5: a steer that finds %s is a queued run", (_, past) => {
    const asked = past.when(steer("run_s"));
    asked.then(accepted(steer("run_s")));
    expect(asked.after.lane.queue.map((run) => run.id)).toEqual(["run_s"]);
    expect(decide(past.lane, steer("run_s")).answer).toMatchObject({ joined: "queue" });
  });

  test("G5: an interrupt cancels the live run, with its own id as the reason, and runs before the queue", () => {
    const asked = given(...running("run_a"), accept("run_b")).when(interrupt("run_i"));
    asked
      .then(accepted(interrupt("run_i")), cancelRequested("run_a", { kind: "superseded", by: "run_i" }))
      .answers({ ...receipt, runId: "run_i", seq: 6, ahead: 1 });
    expect(asked.after.lane.queue.map((run) => run.id)).toEqual(["run_i", "run_b"]);
    expect(asked.after.lane.live).toMatchObject({ phase: "stopping", since: 7 });
  });

  test("interrupts keep their order among themselves", () => {
    const asked = given(...running("run_a"), accept("run_b"), interrupt("run_i")).when(interrupt("run_j"));
    asked.then(accepted(interrupt("run_j"))).answers({ ...receipt, runId: "run_j", seq: 8, ahead: 2 });
    expect(asked.after.lane.queue.map((run) => run.id)).toEqual(["run_i", "run_j", "run_b"]);
  });

  test("an interrupt of an idle session is the next run", () => {
    given()
      .when(interrupt("run_i"))
      .then(accepted(interrupt("run_i")));
  });

  test("an interrupt of a parked run ends it at once, and sends its steers to the queue", () => {
    const asked = given(...running("run_a"), steer("run_s"), park).when(interrupt("run_i"));
    const reason = { kind: "superseded", by: "run_i" } as const;
    asked.then(
      accepted(interrupt("run_i")),
      cancelRequested("run_a", reason),
      runSettled("run_a", cancelledBy(reason), { turnId: "turn_a.1", text: "" }),
      requeued("run_s"),
    );
    expect(asked.after.lane.queue.map((run) => run.id)).toEqual(["run_i", "run_s"]);
    expect(asked.after.lane.live).toBeUndefined();
  });

  test("an interrupt of a parked run has nothing before it: the parked run ended in the same decision", () => {
    given(...running("run_a"), park)
      .when(interrupt("run_i"))
      .answers({ ...receipt, runId: "run_i", seq: 7, ahead: 0 });
  });

  test.each([
    ["is live", given(...running("run_a")), "Session ses_1 is busy with run_a."],
    ["waits", given(accept("run_a")), "Session ses_1 is busy."],
  ])("G5: reject is refused if a run %s", (_, past, message) => {
    past
      .when(accept("run_r", { delivery: "reject" }))
      .then()
      .answers({ kind: "refused", code: "busy", message });
  });

  test("G5: reject is accepted by an idle session", () => {
    const command = accept("run_r", { delivery: "reject" });
    given()
      .when(command)
      .then(accepted(command))
      .answers({ ...receipt, runId: "run_r", seq: 2, ahead: 0 });
  });
});

describe("start", () => {
  test("G4: the oldest waiting run starts, with its first turn", () => {
    given(accept("run_a"), accept("run_b"))
      .when(start)
      .then({ type: "run.started", runId: "run_a" }, turnRequested("run_a", "turn_a.1"));
    expect(decide(given(accept("run_a"), accept("run_b")).lane, start).answer).toBe("run_a");
  });

  test.each([
    ["a run is live", given(...running("run_a"), accept("run_b"))],
    ["the live run is being stopped", given(...running("run_a"), accept("run_b"), cancelRun("run_a"))],
    ["the live run is parked", given(...running("run_a"), accept("run_b"), park)],
    ["nothing waits", given()],
    ["there is no session", givenNoSession()],
  ])("G4: nothing starts while %s", (_, past) => {
    past.when(start).then();
    expect(decide(past.lane, start).answer).toBeUndefined();
  });

  test.each([
    ["completed", settleTurn("turn_a.1")],
    ["failed", settleTurn("turn_a.1", { outcome: { kind: "failed", code: "x", message: "x" } })],
    ["lost", { type: "recover", resume: "lose" } as const],
  ] satisfies [string, Command][])("G4: after a run that %s the next one starts", (_, end) => {
    given(...running("run_a"), accept("run_b"), end)
      .when(start)
      .then({ type: "run.started", runId: "run_b" }, turnRequested("run_b", "turn_b.1"));
  });

  test("G4: after a cancelled run the next one starts", () => {
    const stopped = settleTurn("turn_a.1", { outcome: cancelledBy(user) });
    given(...running("run_a"), accept("run_b"), cancelRun("run_a"), stopped)
      .when(start)
      .then({ type: "run.started", runId: "run_b" }, turnRequested("run_b", "turn_b.1"));
  });
});

describe("steers", () => {
  const steered = given(...running("run_a"), steer("run_s"), steer("run_t"));

  test("G5: the requesting turn takes all that wait, in order, and each has its own outcome", () => {
    steered
      .when({ type: "take", turnId: "turn_a.1" })
      .then(...taken("run_s", "run_a", "turn_a.1"), ...taken("run_t", "run_a", "turn_a.1"))
      .answers([
        { runId: "run_s", prompt: { text: "prompt of run_s" } },
        { runId: "run_t", prompt: { text: "prompt of run_t" } },
      ]);
    expect(steered.and({ type: "take", turnId: "turn_a.1" }).lane.steers).toEqual([]);
  });

  test.each([
    ["of another turn", steered, "turn_a.2"],
    ["of a run that is being stopped", steered.and(cancelRun("run_a")), "turn_a.1"],
    ["of a parked run", steered.and(park), "turn_a.1"],
    ["without a live run", given(), "turn_a.1"],
  ] as const)("a take %s takes nothing", (_, past, turnId) => {
    past.when({ type: "take", turnId }).then().answers([]);
  });

  test("a take with no waiting steers records nothing", () => {
    given(...running("run_a"))
      .when({ type: "take", turnId: "turn_a.1" })
      .then()
      .answers([]);
  });

  test("G5: the next turn takes in waiting steers", () => {
    const end = settleTurn("turn_a.1", { next: "turn" });
    steered
      .when(end)
      .then(
        { type: "turn.settled", runId: "run_a", ...end.end },
        ...taken("run_s", "run_a", "turn_a.2"),
        ...taken("run_t", "run_a", "turn_a.2"),
        turnRequested("run_a", "turn_a.2"),
      );
  });

  test("G5: a steer whose run has ended becomes a queued run, at the place of its acceptance", () => {
    const end = settleTurn("turn_a.1");
    const past = given(...running("run_a"), accept("run_b"), steer("run_s"), accept("run_c"));
    past
      .when(end)
      .then(
        { type: "turn.settled", runId: "run_a", ...end.end },
        runSettled("run_a", completed, { turnId: "turn_a.1", text: "" }),
        requeued("run_s"),
      );
    expect(past.and(end).lane.queue.map((run) => run.id)).toEqual(["run_b", "run_s", "run_c"]);
    expect(past.and(end).lane.steers).toEqual([]);
  });

  test("steers keep waiting while their run is being stopped", () => {
    steered.when(cancelRun("run_a")).then(cancelRequested("run_a"));
  });

  test("a recovered run takes in the steers that waited for it", () => {
    expect(steered.and({ type: "recover", resume: "resume" }).lane.steers).toEqual([]);
  });

  test("G7: a cancel of the session covers steers too", () => {
    steered
      .when(cancelSession(policy))
      .then(
        { type: "session.cancel_requested", reason: policy, covers: ["run_a", "run_s", "run_t"] },
        cancelRequested("run_a", policy),
        runSettled("run_s", cancelledBy(policy)),
        runSettled("run_t", cancelledBy(policy)),
      );
  });
});

function manyRuns(count: number): readonly Accept[] {
  return Array.from({ length: count }, (_, index) => accept(`run_many${index}`));
}

describe("requests under a key", () => {
  const once = { key: "k", content: "c" };
  const cancel = { ...cancelSession(), once };

  test("G2: the answer is recorded after the events it refers to", () => {
    const answer = { kind: "withdrawn", runs: [{ runId: "run_a", receipt: { kind: "withdrawn" } }] } as const;
    const { events } = decide(given(accept("run_a")).lane, cancel);
    expect(events.at(-1)).toEqual({ type: "request.answered", ...once, answer });
  });

  test("G7: an idle cancel writes no event; its key and answer are a memo, and its retry covers nothing later", () => {
    const answer = { kind: "idle", runs: [] } as const;
    const past = given();
    past.when(cancel).then().answers(answer);
    expect(decide(past.lane, cancel).memos).toEqual([keep({ kind: "answer", ...once, answer })]);
    given(cancel, accept("run_a")).when(cancel).then().answers(answer);
  });

  test("G2: another key is another request", () => {
    const other = { ...cancelSession(), once: { key: "l", content: "c" } };
    given(cancel, accept("run_a"))
      .when(other)
      .answers({ kind: "withdrawn", runs: [{ runId: "run_a", receipt: { kind: "withdrawn" } }] });
  });

  test("G2: an answer that is a string or a list is kept as well", () => {
    given(accept("run_a"))
      .when({ type: "start", once })
      .then({ type: "run.started", runId: "run_a" }, turnRequested("run_a", "turn_a.1"), {
        type: "request.answered",
        ...once,
        answer: "run_a",
      });
    given(...running("run_a"))
      .when({ type: "take", turnId: "turn_a.1", once })
      .then()
      .answers([]);
  });

  test("G7: a repeated cancel covers what the first one covered, and no run accepted in between", () => {
    const past = given(...running("run_a"), cancel, accept("run_b"));
    const { answer } = decide(given(...running("run_a")).lane, cancel);
    past.when(cancel).then().answers(answer);
    expect(past.lane.queue.map((run) => run.id)).toEqual(["run_b"]);
  });

  test("G3: nothing is kept for a session that was never created", () => {
    givenNoSession().when(cancel).then().answers({ kind: "unknown", runs: [] });
  });

  test("G3: a temporary refusal is not kept: the same request may succeed later", () => {
    const text = "x".repeat(QUEUE_BYTES_MAX - 20);
    const full = given(accept("run_a", { prompt: { text } }), accept("run_b"));
    const edit = { type: "edit", runId: "run_b", prompt: { text: "x".repeat(30) }, once } as const;
    full.when(edit).then();
  });
});
