// What is said of the suites in which time, disk and everybody around are simulated.
import type { Suite } from "./published-suite.ts";

const sim: Suite = {
  name: "sim",
  title: "Random schedules",
  promised:
    "Whatever order things happen in, every accepted prompt reaches exactly one outcome, a cancel covers what came " +
    "before it and nothing after, no call is repeated whose end is known, and the log tells the truth about all of it.",
  attacked:
    "The real engine runs in one thread with every store call, timer, agent, process and follower held back by a " +
    "scheduler. Seeded dice choose what goes on next: workers vanish, commits fail or lose their answer, clocks " +
    "jump, followers come and go. First faults are on; then they are off, and everything must come to rest.",
  violation:
    "Anything that a small model of the promises, written apart from the engine, does not allow; a run that never " +
    "ends; an entry or a timer that is left at rest. Only distinct schedules are counted: those with a trace of " +
    "their own.",
  command: ["sim", "--schedules", "1100000", "--seed", "1"],
  shown: { schedules: "schedules", distinct: "distinct", violations: "violations", perSecond: "a second" },
  trials: { count: "distinct", one: "schedule" },
  demands: { ends: "holds", zero: ["violations"], atLeast: { distinct: 1_000_000 } },
};

const exhaustive: Suite = {
  name: "exhaustive",
  title: "All orders of a few things",
  promised: "The same, for every order in which a few prompts, cancels and ends can happen, not only for many of them.",
  attacked: "Small scopes are searched to their end: each choice the scheduler has is made, one after the other.",
  violation: "As above. There is no chance in this one: what it has searched holds.",
  command: ["sim", "--exhaustive"],
  shown: { scopes: "scopes", interleavings: "interleavings", violations: "violations" },
  demands: { ends: "holds", zero: ["violations"], some: ["scopes", "interleavings"] },
};

const faults: Suite = {
  name: "faults",
  title: "Every store call with every fault",
  promised:
    "If the store fails, whoever can be refused is refused with a code and leaves no trace; cancels and ends are " +
    "kept and tried until they are recorded; when the store is back, everything settles.",
  attacked:
    "Short stories are told over and over. In each telling one call of the store goes wrong: it fails, is full, " +
    "locked or corrupt, loses its answer, or does not come back for long. It is the first call, then the second, " +
    "until the story ends before the fault is met. Then pairs of faults.",
  violation:
    "A caller who is told something that the log does not have, or refused something that it has; a promise that is " +
    "never settled; an error without a code; anything left at rest; a session that takes no next prompt.",
  command: ["faults", "--seed", "1", "--pairs", "20000"],
  shown: { stories: "stories", injections: "faults", violations: "violations" },
  demands: { ends: "holds", zero: ["violations"], some: ["stories", "injections"] },
};

const power: Suite = {
  name: "power",
  title: "Power loss",
  promised: "What was acknowledged is there after the power comes back, whole and in order; nothing is there in part.",
  attacked:
    "The real SQLite engine and our real store on a disk in memory that knows what was synced. At a random moment " +
    "the power goes: of every sector that was not synced any subset has reached the disk, files that were not synced " +
    "into their directory may be missing, and sizes may be old or new. Cuts fall into writes, syncs, checkpoints, " +
    "migrations and into the recovery from the cut before.",
  violation:
    "An acknowledged event that is missing, half a batch, a file that cannot be opened, rows that do not agree with " +
    "their events, a log that breaks its own laws, or a store that takes nothing more.",
  command: ["power", "--cuts", "20000", "--seed", "1"],
  shown: { cuts: "cuts", distinct: "distinct", acked: "acknowledged", lost: "lost", torn: "torn", corrupt: "corrupt" },
  trials: { count: "cuts", one: "cut" },
  demands: { ends: "holds", zero: ["lost", "torn"], atLeast: { cuts: 20_000 }, some: ["acked"] },
};

export const CLOCKWORK: readonly Suite[] = [sim, exhaustive, faults, power];
