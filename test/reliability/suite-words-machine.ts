// What is said of the suites with real servers, real processes and real files.
import type { Suite } from "./published-suite.ts";

const crash: Suite = {
  name: "crash",
  title: "kill -9",
  promised:
    "A server that is killed loses nothing it has acknowledged. The next one ends or takes up every run that was " +
    "open, repeats no call whose end is known, and says of a call whose end is not known that it is not known.",
  attacked:
    "Clients prompt, steer, cancel and edit the queue of a real server with a real file, and write down what they " +
    "were told. The server is killed with SIGKILL: at random moments, and at named points between any two writes. " +
    "The next one takes over, and is killed as well, also while it recovers.",
  violation:
    "Something acknowledged that the log does not have; a run with no outcome, or with two; a call that has left " +
    "more than one mark in the file where calls leave their marks; a run that is stuck; an order or a slice of " +
    "events that is not the log's.",
  command: ["crash", "--kills", "3000", "--seed", "1"],
  shown: {
    ...{ kills: "kills", acked: "acknowledged", lost: "lost", withoutOutcome: "without outcome" },
    ...{ twoOutcomes: "with two outcomes", repeatedCalls: "repeated calls", stuck: "stuck", points: "named points" },
    ...{
      violations: "violations of any kind",
      processesLeft: "processes left",
      nestedKills: "killed while recovering",
    },
  },
  trials: { count: "kills", one: "kill" },
  demands: {
    ends: "holds",
    zero: ["lost", "withoutOutcome", "twoOutcomes", "repeatedCalls", "stuck", "violations", "processesLeft"],
    atLeast: { kills: 3_000 },
    some: ["acked"],
  },
};

const TREES_SHOWN = {
  ...{ trees: "trees", shapes: "shapes", mechanism: "held by", survivors: "survivors" },
  ...{ cancelToDeadP50Ms: "stop to dead, median, ms", cancelToDeadP99Ms: "stop to dead, 99 %, ms" },
} as const;

/** Of each mechanism: the least of them is as true as the best. */
const TREES_APART = {
  ...{ trees: "trees", survivors: "survivors", documentedLeaks: "known to survive" },
  ...{ cancelToDeadP50Ms: "median, ms", cancelToDeadP99Ms: "99 %, ms" },
} as const;

const NEXT_START = { endedAtNextStart: "ended by the next server" } as const;

const trees: Suite = {
  name: "trees",
  title: "Hostile process trees",
  promised:
    "A process that is stopped is dead with everything it has started, before anybody is told that it has ended.",
  attacked:
    "Trees that do not want to die: they ignore signals, start sessions of their own, fork faster than one can look, " +
    "hold pipes open, leave daemons behind. Each is started and stopped with each mechanism this machine has.",
  violation: "Anybody of a tree who is alive when it is said to be dead, beyond what is documented for its mechanism.",
  command: ["trees", "--rounds", "100", "--concurrency", "4", "--seed", "1"],
  shown: TREES_SHOWN,
  apart: { key: "mechanisms", one: "held by", shown: TREES_APART },
  trials: { count: "trees", one: "tree" },
  demands: { ends: "holds", zero: ["survivors"], atLeast: { trees: 1_000 } },
};

const parentKill: Suite = {
  ...trees,
  name: "trees-parent-kill",
  title: "Process trees of a server that is killed",
  promised: "If the server itself is killed, what it has started does not outlive it.",
  attacked: "The same trees, all at once, under a server that is killed with SIGKILL and can tell nobody.",
  violation: "Anybody who is alive two seconds later, or after the next server has started and looked.",
  command: ["trees", "--parent-kill", "--rounds", "50", "--seed", "1"],
  shown: { ...TREES_SHOWN, ...NEXT_START },
  apart: { key: "mechanisms", one: "held by", shown: { ...TREES_APART, ...NEXT_START } },
  demands: { ends: "holds", zero: ["survivors"], atLeast: { trees: 500 } },
};

const soak: Suite = {
  name: "soak",
  title: "Soak",
  promised: "A server that has run for long holds no more than one that has just begun.",
  attacked:
    "A real server under a steady mixture of everything, for as long as is asked: prompts, turns, steers, cancels of " +
    "every scope, processes of every kind, approvals, followers who stay, leave or do not read, editors, strangers. " +
    "Now and then connections are cut, the file is locked by somebody else, a tree is killed from outside, the disk " +
    "is full, the server stands still.",
  violation:
    "A descriptor, a handle, a timer, a process or an open entry more at the last rest than at the first; somebody " +
    "whose end nobody has noted; a deed that went wrong; memory that is shown to grow by more than a megabyte an " +
    "hour. The log grows on the disk, as it should. In memory there are pages of it, of a bounded number: so the " +
    "heap after a collection and the whole memory of the process are looked at apart. Each slope is drawn through " +
    "the second part of the time and has its standard error beside it. What counts is the lower end of its interval " +
    "(95 %): a short soak can show that memory grows, and cannot show that it does not.",
  command: ["soak", "--minutes", "60", "--seed", "1"],
  shown: {
    ...{ minutes: "minutes", runs: "runs", sessions: "sessions", events: "events", cancels: "cancels" },
    ...{ processes: "processes", faults: "faults", leaks: "leaks", zombies: "zombies", wrong: "deeds gone wrong" },
    ...{ rssSlopeMBPerHour: "RSS, MB an hour", rssSlopeErrorMBPerHour: "± standard error" },
    ...{ heapSlopeMBPerHour: "heap, MB an hour", heapSlopeErrorMBPerHour: "± standard error" },
    ...{ fdSlopePerHour: "descriptors, an hour", rssMB: "RSS at the end, MB", heapMB: "heap at the end, MB" },
  },
  demands: { ends: "holds", zero: ["leaks", "zombies", "wrong"], atLeast: { minutes: 10 }, some: ["runs", "faults"] },
};

const steady: Suite = {
  name: "steady",
  title: "Steady load with retention",
  promised:
    "With retention on, a store does not grow: its size, the memory and CPU of the program, the time a start takes " +
    "and the time a cancel takes stay what they are.",
  attacked:
    "One store under prompts at a fixed rate, with calls, summaries and cancels in sessions that come and go. " +
    "Retention cuts sessions and deletes the idlest ones all the time. Now and then a copy is taken while it runs, " +
    "verified by opening it, and the time of that start is measured.",
  violation:
    "A median of the last third of the time that is more than a quarter above that of the second third, in any of " +
    "the five; memory that grows by more than 10 MB an hour; a run that ends otherwise than it should.",
  command: ["steady", "--minutes", "60", "--seed", "1"],
  shown: {
    ...{ minutes: "minutes", runs: "runs", sessions: "sessions", cancels: "cancels" },
    wrong: "runs that ended otherwise than they should",
  },
  apart: {
    key: "change",
    one: "measured",
    shown: { before: "second third", after: "last third", growth: "times as much" },
  },
  plot: {
    key: "series",
    at: "atSeconds",
    shown: {
      ...{ storeMB: "store, MB", memoryMB: "memory, MB", cpuMsPerRun: "CPU of a run, ms" },
      ...{ startMs: "start, ms", cancelMs: "slowest of 100 cancels, ms" },
    },
  },
  demands: { ends: "holds", zero: ["wrong"], empty: ["grown"], atLeast: { minutes: 5 }, some: ["runs", "cancels"] },
};

export const MACHINERY: readonly Suite[] = [crash, trees, parentKill, soak, steady];
