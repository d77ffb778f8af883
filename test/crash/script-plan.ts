// Which scripts prompts are sent with: chosen by the seed, so that every kind of work is going on when a server dies.
import { type Chooser, pick, weighted } from "../../sim/chooser.ts";
import type { Script, Step } from "./script.ts";

/** Durations, short and long beside those of a commit. */
const MS = [0, 5, 20, 60, 150, 300] as const;

const say: Step = { do: "say", words: 4 };

type Make = (chooser: Chooser) => Script["turns"];

const SHAPES: readonly (readonly [weight: number, Make])[] = [
  [3, () => [[say]]],
  [
    4,
    (chooser) => [
      [
        say,
        { do: "call", ms: pick(chooser, MS) },
        { do: "call", ms: pick(chooser, MS), idempotent: true },
        { do: "call", ms: pick(chooser, MS) },
      ],
      [{ do: "steers" }, say],
    ],
  ],
  [
    4,
    (chooser) => [
      [
        say,
        { do: "last-call", ms: pick(chooser, MS) },
        { do: "last-call", ms: pick(chooser, MS), idempotent: true },
        { do: "last-call", ms: 20, approval: true },
      ],
      [{ do: "steers" }, { do: "call", ms: pick(chooser, MS) }],
    ],
  ],
  [2, (chooser) => [[{ do: "call", ms: pick(chooser, MS), approval: true }], [say]]],
  [2, (chooser) => [[{ do: "command", ms: pick(chooser, MS) }], [say]]],
  [1, () => [[{ do: "command" }, say]]],
  [2, (chooser) => [[{ do: "background", ms: pick(chooser, MS), feedback: pick(chooser, FEEDBACKS) }, say]]],
  [1, (chooser) => [[{ do: "background", feedback: pick(chooser, FEEDBACKS) }]]],
];

const FEEDBACKS = ["wake", "next-turn", "silent"] as const;

export const someTurns = (chooser: Chooser): Script["turns"] => weighted(chooser, SHAPES)(chooser);

/** A tool that finishes, then one that takes its server with it. */
export const POISON: Script["turns"] = [[{ do: "call", ms: 0 }, { do: "kill" }]];
