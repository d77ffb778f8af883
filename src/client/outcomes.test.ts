import { describe, expect, test } from "vitest";
import type { RunId } from "../core/model/ids.ts";
import { settled } from "../testing/manual-clock.ts";
import { OUTCOMES_TOGETHER_MAX } from "./limits.ts";
import { Outcomes, type OutcomesFound } from "./outcomes.ts";

const COMPLETED = { kind: "completed" } as const;

/** A server that responds when the test makes it. */
function asked() {
  const requests: (PromiseWithResolvers<OutcomesFound> & { readonly runs: readonly RunId[]; over: boolean })[] = [];
  const outcomes = new Outcomes((runs, signal) => {
    const one = Object.assign(Promise.withResolvers<OutcomesFound>(), { runs, over: false });
    one.promise.then(
      () => (one.over = true),
      () => (one.over = true),
    );
    signal.addEventListener("abort", () => one.reject(signal.reason));
    requests.push(one);
    return one.promise;
  });
  return {
    outcomes,
    requests,
    open: () => requests.filter(({ over }) => !over),
    end: (...runs: RunId[]): OutcomesFound => ({
      ...{ outcomes: runs.map((runId) => ({ runId, outcome: COMPLETED })), failed: [] },
    }),
  };
}

describe("pending outcomes", () => {
  test("G40: of 500 runs need nine concurrent requests, in whatever order they are added", async () => {
    const { outcomes, open } = asked();
    for (let count = 0; count < 500; count += 1) {
      void outcomes.of(`run_${count}`);
      if (count % 7 === 0) await settled();
    }
    await settled();
    expect(open()).toHaveLength(Math.ceil(500 / OUTCOMES_TOGETHER_MAX));
    expect(open().flatMap(({ runs }) => runs)).toHaveLength(500);
  });

  test("of runs of one tick share one request", async () => {
    const { outcomes, requests } = asked();
    for (let count = 0; count < 10; count += 1) void outcomes.of(`run_${count}`);
    await settled();
    expect(requests).toHaveLength(1);
  });

  test("are requested until the last run has ended, without the runs that have", async () => {
    const { outcomes, requests, open, end } = asked();
    const [a, b] = [outcomes.of("run_a"), outcomes.of("run_b")];
    expect(outcomes.of("run_a")).toBe(a);
    await settled();
    requests[0]?.resolve(end());
    await settled();
    requests[1]?.resolve(end("run_b"));
    expect(await b).toEqual(COMPLETED);
    await settled();
    expect(open().map(({ runs }) => runs)).toEqual([["run_a"]]);
    requests[2]?.resolve(end("run_a"));
    expect(await a).toEqual(COMPLETED);
    await settled();
    expect(requests).toHaveLength(3);
  });

  test("that were read elsewhere are no longer requested, and the request of the last one ends", async () => {
    const { outcomes, open } = asked();
    const [a, b] = [outcomes.of("run_a"), outcomes.of("run_b")];
    await settled();
    outcomes.settle("run_a", COMPLETED);
    expect(await a).toEqual(COMPLETED);
    expect(open()).toHaveLength(1);
    outcomes.settle("run_b", COMPLETED);
    expect(await b).toEqual(COMPLETED);
    await settled();
    expect(open()).toEqual([]);
  });

  test("reject one by one if the server reports an error, and together if it is unreachable", async () => {
    const { outcomes, requests } = asked();
    const [a, b, c] = [outcomes.of("run_a"), outcomes.of("run_b"), outcomes.of("run_c")];
    await settled();
    const error = { code: "not_found", message: "There is no run run_a." };
    requests[0]?.resolve({ outcomes: [], failed: [{ runId: "run_a", error }] });
    await expect(a).rejects.toMatchObject({ code: "not_found", message: error.message });
    await settled();
    requests[1]?.reject(new Error("gone"));
    await expect(b).rejects.toThrow("gone");
    await expect(c).rejects.toThrow("gone");
    void outcomes.of("run_d");
    await settled();
    expect(requests[2]?.runs).toEqual(["run_d"]);
  });
});
