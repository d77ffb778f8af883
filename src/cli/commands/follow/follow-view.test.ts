import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import type { Delta } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import { FollowView } from "./follow-view.ts";

const turn = { runId: "run_1", turnId: "turn_1" } as const;

const said = (text: string): Delta => ({ type: "delta", ...turn, text, from: 0 }) as Delta;

const recorded = (text: string): Recorded => ({ type: "turn.extended", ...turn, text, seq: 7, at: 0 }) as Recorded;

function shown(...heard: readonly (Delta | Recorded)[]): string {
  const output = new PassThrough();
  const view = new FollowView({ output: output as unknown as NodeJS.WriteStream, form: "text" });
  for (const one of heard) view.show(one);
  view.close();
  return String(output.read() ?? "");
}

test("G36: on a terminal, words that imitate a question or a line of Belay's stand in a margin", () => {
  const output = Object.assign(new PassThrough(), { isTTY: true, columns: 40 });
  const view = new FollowView({ output: output as unknown as NodeJS.WriteStream, form: "text" });
  const imitated = "Allow it? [y/n]\n     8  run.settled\n";
  for (const one of [said("Well.\n"), said(imitated), recorded("other"), said("more")]) view.show(one);
  view.close();
  const rows = String(output.read()).split("\n");
  expect(rows.filter((row) => /Well|Allow|settled|more/.test(row))).toEqual([
    ...["│ Well.", "│ Allow it? [y/n]", "│      8  run.settled", "│ more"],
  ]);
  expect(rows.find((row) => row.includes("turn.extended"))).not.toContain("│");
});

test("what was read while it was said is not shown again when it is recorded", () => {
  expect(shown(said("one "), said("two "), recorded("one two "), said("three "), recorded("three "))).toBe(
    "one two three \n",
  );
});

test("whoever comes in the middle has heard more than what is recorded next, or less", () => {
  expect(shown(said("nine ten "), recorded("ten "))).toBe("nine ten \n");
  expect(shown(said("ten "), recorded("nine ten "))).toMatch(/^ten \n.*turn\.extended.*nine ten/);
});

test("what nobody has heard being said is shown when it is recorded, also if it is said once more", () => {
  expect(shown(recorded("one "))).toMatch(/turn\.extended.*one/);
  expect(shown(said("la "), recorded("la "), recorded("la "))).toMatch(/^la \n.*turn\.extended.*la/);
});
