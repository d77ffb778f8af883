// A cancel that names prompts which have not arrived: what it leaves, and what the prompts meet.
import { describe, expect, test } from "vitest";
import { accept, running } from "../../../test/fixtures/commands.ts";
import { given, givenNoSession } from "../../testing/given.ts";
import { ANSWERS_KEPT } from "../limits.ts";
import type { CancelReason } from "../model/cancel.ts";
import type { Command, CommandOf } from "../model/command.ts";
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
    expect(given(cancel, late).lane).toMatchObject({ memos: [], queue: [] });
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
      expect(past.and(other).lane.memos).toHaveLength(1);
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

  test("G10: a prompt that has ended by now is not waited for", () => {
    given()
      .when({ ...naming("k"), arrived: ["k"] })
      .then()
      .answers({ kind: "idle", runs: [] });
    given()
      .when({ ...byKey, arrived: ["k"] })
      .then()
      .answers({ kind: "unknown" });
  });

  test("G33: beyond the limit of its user it is refused, and what has arrived is stopped", () => {
    const { events, answer, memos } = decide(given(accept("run_a")).lane, { ...naming("k"), crowded: true });
    expect(answer).toMatchObject({ kind: "refused", code: "queue_full" });
    expect(events.map(({ type }) => type)).toEqual(["session.cancel_requested", "run.settled"]);
    expect(memos).toBeUndefined();
  });

  test("G7: sent again by its key it is the same, also in a session that did not exist", () => {
    const once = { key: "K", content: "c" };
    const first = { ...naming("k"), once };
    const answer = { kind: "withdrawn", runs: [], prompts: ["k"] } as const;
    givenNoSession().and(first, { type: "create" }, accept("run_b")).when(first).then().answers(answer);
    given(first, late, accept("run_b")).when(first).then().answers(answer);
  });
});

test("G33: a session keeps the latest answers that left no event, and forgets older ones", () => {
  const idle = (key: string): Command => ({ type: "cancel-session", reason: user, once: { key, content: "c" } });
  const keys = Array.from({ length: ANSWERS_KEPT + 1 }, (_one, index) => `K${index}`);
  const { memos } = given(naming("k"), ...keys.map(idle)).lane;
  expect(memos.map(({ key }) => key)).toEqual(["k", ...keys.slice(1)]);
});
