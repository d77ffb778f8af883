// A cancel that names prompts which have not arrived: the memos it leaves, and what happens to the prompts.
import { describe, expect, test } from "vitest";
import { accept, running } from "../../../test/fixtures/commands.ts";
import { given, givenNoSession } from "../../testing/given.ts";
import { ANSWER_CHARS_PER_ACTOR_MAX, ANSWERS_KEPT, ANSWERS_PER_ACTOR_MAX } from "../limits.ts";
import type { CancelReason } from "../model/cancel.ts";
import type { Command, CommandOf } from "../model/command.ts";
import { evolve } from "../model/lane.ts";
import { keep } from "../model/memo.ts";
import { decide } from "./decide.ts";

const user: CancelReason = { kind: "user", note: "wrong branch" };
const naming = (...prompts: string[]): CommandOf<"cancel-session"> => ({
  ...{ type: "cancel-session", reason: user, prompts, actor: "ann" },
});
const byKey: Command = { type: "cancel-key", key: "k", prompts: ["k"], actor: "ann", reason: user };
const late = accept("run_k", { key: "k", actor: "ann" });
const withdrawn = {
  type: "run.settled",
  runId: "run_k",
  outcome: { kind: "cancelled", reason: user },
  key: "k",
} as const;
const { type: _, ...prompted } = late;
const recorded = {
  type: "run.accepted",
  runId: "run_k",
  prompt: prompted.prompt,
  delivery: "queue",
  key: "k",
} as const;

describe("a prompt that was cancelled before it arrived", () => {
  test.each<[string, Command]>([
    ["a cancel of its session", naming("k")],
    ["a cancel by its key", byKey],
  ])("G7: by %s, is accepted and withdrawn in one decision, with its own outcome", (_name, cancel) => {
    given(cancel).when(late).then(recorded, withdrawn);
    expect(given(cancel, late).lane.memos.list()).toEqual([]);
    expect(given(cancel, late).lane).toMatchObject({ queue: [] });
  });

  test("G7: even in a session that does not exist yet", () => {
    givenNoSession().and(naming("k"), { type: "create" }).when(late).then(recorded, withdrawn);
  });

  test("G7: does not interrupt the live run", () => {
    const interrupt = accept("run_k", { key: "k", actor: "ann", delivery: "interrupt" });
    given(...running("run_a"))
      .and(naming("k"), interrupt)
      .when({ type: "start" })
      .then();
    const past = given(...running("run_a"), byKey, interrupt);
    expect(past.lane.live).toMatchObject({ id: "run_a", phase: "running" });
  });

  test("G10: another prompt, another user's prompt, and one without a key run", () => {
    const past = given(naming("k"));
    for (const other of [
      accept("run_k", { key: "l", actor: "ann" }),
      accept("run_k", { key: "k", actor: "bob" }),
      accept("run_k", { key: "k" }),
      accept("run_k", { actor: "ann" }),
    ]) {
      expect(past.and(other).lane.queue).toHaveLength(1);
      expect(past.and(other).lane.memos.size).toBe(1);
    }
  });

  test("G7: a refused prompt leaves the memo for its retry", () => {
    const past = given(...running("run_a"), byKey);
    const { events, memos } = decide(past.lane, { ...late, delivery: "reject" });
    expect([events, memos]).toEqual([[], undefined]);
  });
});

describe("the receipt", () => {
  test("G10: names the prompts that have not arrived, besides the runs that it covers", () => {
    given(...running("run_a"), late)
      .when(naming("k", "l", "l"))
      .answers({
        kind: "stopping",
        runs: [
          { runId: "run_a", receipt: { kind: "stopping", since: 7, first: true } },
          { runId: "run_k", receipt: { kind: "withdrawn" } },
        ],
        prompts: ["l"],
      });
    given()
      .when(naming("k"))
      .then()
      .answers({ kind: "withdrawn", runs: [], prompts: ["k"] });
    given().when(byKey).then().answers({ kind: "withdrawn" });
  });

  test("G10: does not name a prompt that has ended by now", () => {
    given()
      .when({ ...naming("k"), arrived: ["k"] })
      .then()
      .answers({ kind: "idle", runs: [] });
    given()
      .when({ ...byKey, arrived: ["k"] })
      .then()
      .answers({ kind: "unknown" });
  });

  test("G33: above the limit of its user is refused, and the runs that have arrived are stopped", () => {
    const { events, answer, memos } = decide(given(accept("run_a")).lane, { ...naming("k"), crowded: true });
    expect(answer).toMatchObject({ kind: "refused", code: "queue_full" });
    expect(events.map(({ type }) => type)).toEqual(["session.cancel_requested", "run.settled"]);
    expect(memos).toBeUndefined();
  });

  test("G7: is the same for a retry with its key, even in a session that did not exist", () => {
    const once = { key: "K", content: "c" };
    const first = { ...naming("k"), once };
    const answer = { kind: "withdrawn", runs: [], prompts: ["k"] } as const;
    givenNoSession().and(first, { type: "create" }, accept("run_b")).when(first).then().answers(answer);
    given(first, late, accept("run_b")).when(first).then().answers(answer);
  });
});

describe("a session cancel under a key", () => {
  const once = { key: "K", content: "c" };
  const idle = (key: string, actor = "bob"): Command => ({
    ...{ type: "cancel-session", reason: user, actor, once: { key, content: "c" } },
  });
  const first = { ...idle("K", "ann"), once };

  test("G7: of an idle session is remembered however many requests follow", () => {
    const many = Array.from({ length: ANSWERS_KEPT + 1 }, (_one, index) => idle(`other ${index}`));
    given(first, ...many, accept("run_a"))
      .when(first)
      .then()
      .answers({ kind: "idle", runs: [] });
  });

  test("G7: that stopped a run is remembered however many requests follow", () => {
    const modes = Array.from({ length: ANSWERS_KEPT + 1 }, (_one, index): Command => {
      return { type: "set-mode", mode: `mode ${index}`, once: { key: `mode ${index}`, content: "c" } };
    });
    given(accept("run_a"), first, ...modes, accept("run_b"))
      .when(first)
      .then()
      .answers({ kind: "withdrawn", runs: [{ runId: "run_a", receipt: { kind: "withdrawn" } }] });
  });

  test("G33: above the limit of its user is carried out and its answer refused; another user's is not", () => {
    const memos = Array.from({ length: ANSWERS_PER_ACTOR_MAX }, (_one, index) =>
      keep({ kind: "answer", key: `other ${index}`, content: "c", answer: null, actor: "ann" }),
    );
    const { lane } = given(accept("run_a"));
    const full = { ...lane, memos: lane.memos.with(memos) };
    const refused = { kind: "refused", code: "queue_full" };
    const decided = decide(full, first);
    expect(decided.answer).toMatchObject(refused);
    expect(decided.events.map(({ type }) => type)).toEqual([
      ...["session.cancel_requested", "run.settled", "request.answered"],
    ]);
    expect(decided.memos).toBeUndefined();
    // The stop is carried out once, although the answer is a refusal.
    const after = { ...full, ...decided.events.reduce(evolve, full) };
    expect(decide(after, first)).toEqual({ events: [], answer: decided.answer });
    expect(decide(full, idle("K", "bob")).answer).toMatchObject({ kind: "withdrawn" });
  });

  test("G33: is limited in the characters of a user's answers, too", () => {
    const answer = "x".repeat(ANSWER_CHARS_PER_ACTOR_MAX / 2);
    const large = ["one", "two"].map((key) => keep({ kind: "answer", key, content: "c", answer, actor: "ann" }));
    const { lane } = given();
    expect(decide({ ...lane, memos: lane.memos.with(large.slice(1)) }, first).answer).toMatchObject({ kind: "idle" });
    expect(decide({ ...lane, memos: lane.memos.with(large) }, first).answer).toMatchObject({ kind: "refused" });
  });

  test("G7: that is refused as crowded is not repeated for later runs", () => {
    const crowded = { ...naming("k"), once, crowded: true } as const;
    const { lane } = given(accept("run_a"));
    const { events, answer, memos = [] } = decide(lane, crowded);
    expect(answer).toMatchObject({ kind: "refused", code: "queue_full" });
    const after = { ...events.reduce(evolve, lane), memos: lane.memos.with(memos) };
    const later = decide(after, accept("run_b")).events.reduce(evolve, after);
    expect(decide(later, { ...naming("k"), once })).toEqual({ events: [], answer });
  });
});
