import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import type { Delta } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import { FollowView } from "./follow-view.ts";

const turn = { runId: "run_1", turnId: "turn_1" } as const;

const delta = (text: string): Delta => ({ type: "delta", ...turn, text, from: 0 }) as Delta;

const recorded = (text: string): Recorded => ({ type: "turn.extended", ...turn, text, seq: 7, at: 0 }) as Recorded;

function shown(...events: readonly (Delta | Recorded)[]): string {
  const output = new PassThrough();
  const view = new FollowView({ output: output as unknown as NodeJS.WriteStream, form: "text" });
  for (const one of events) view.show(one);
  view.close();
  return String(output.read() ?? "");
}

test("G36: on a terminal, model text that imitates a question or a line of Belay's is in a margin", () => {
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 40 });
  const view = new FollowView({ output: output as unknown as NodeJS.WriteStream, form: "text" });
  const imitated = "Allow it? [y/n]\n     8  run.settled\n";
  for (const one of [delta("Well.\n"), delta(imitated), recorded("other"), delta("more")]) view.show(one);
  view.close();
  const rows = String(output.read()).split("\n");
  expect(rows.filter((row) => /Well|Allow|settled|more/.test(row))).toEqual([
    ...["│ Well.", "│ Allow it? [y/n]", "│      8  run.settled", "│ more"],
  ]);
  expect(rows.find((row) => row.includes("turn.extended"))).not.toContain("│");
});

test("recorded text that was shown from deltas is not shown again", () => {
  expect(shown(delta("one "), delta("two "), recorded("one two "), delta("three "), recorded("three "))).toBe(
    "one two three \n",
  );
});

test("a follower that joins mid-turn gets recorded text if its deltas did not cover it", () => {
  expect(shown(delta("nine ten "), recorded("ten "))).toBe("nine ten \n");
  expect(shown(delta("ten "), recorded("nine ten "))).toMatch(/^ten \n.*turn\.extended.*nine ten/);
});

test("recorded text without deltas is shown, even if it repeats earlier text", () => {
  expect(shown(recorded("one "))).toMatch(/turn\.extended.*one/);
  expect(shown(delta("la "), recorded("la "), recorded("la "))).toMatch(/^la \n.*turn\.extended.*la/);
});
