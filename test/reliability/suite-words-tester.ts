// What is said of the suites that test the suites: mistakes that must be found, and disks that must fail.
import { type Room, rooms } from "../mutate/rooms.ts";
import type { Suite } from "./published-suite.ts";

const bugs: Suite = {
  name: "bugs",
  title: "Known mistakes, in the simulation",
  promised: "The simulation finds mistakes of the kinds that are made.",
  attacked: "Known mistakes, many of them made by others before us, are put into the engine, one at a time.",
  violation: "A mistake that is not found.",
  command: ["sim", "--bugs"],
  shown: { known: "known", found: "found" },
  demands: { ends: "holds", same: ["known", "found"], empty: ["missed"] },
};

const faultsMistakes: Suite = {
  ...bugs,
  name: "faults-mistakes",
  title: "Known mistakes, among the faults",
  promised: "The search through all faults finds an engine that takes one of them wrongly.",
  attacked: "Known mistakes in the handling of a failing store are put into the engine, one at a time.",
  command: ["faults", "--mistakes"],
};

const powerMistakes: Suite = {
  ...bugs,
  name: "power-mistakes",
  title: "Known mistakes, at power loss",
  promised: "The cuts find a store that acknowledges too early.",
  attacked: "Known mistakes are put into the store or into the disk, one at a time.",
  command: ["power", "--mistakes", "--seed", "1"],
  shown: { mistakes: "known" },
  demands: { ends: "holds", some: ["mistakes"], empty: ["missed"] },
};

const powerNormal: Suite = {
  name: "power-normal",
  title: "Power loss without a sync for each commit",
  promised: "The cuts find a loss where there is one.",
  attacked: "The same store with `synchronous=NORMAL`, which does not sync each commit. It must fail.",
  violation: "That nothing is lost.",
  command: ["power", "--cuts", "2000", "--seed", "1", "--sync", "normal"],
  shown: { cuts: "cuts", acked: "acknowledged", lost: "lost", torn: "torn" },
  demands: { ends: "fails", some: ["cuts", "lost"] },
};

const powerLying: Suite = {
  ...powerNormal,
  name: "power-lying",
  title: "Power loss on a disk that lies",
  attacked: "The same store on a disk that says of every sync that it is done and does nothing. It must fail.",
  command: ["power", "--cuts", "2000", "--seed", "1", "--disk", "lying"],
};

const soakMistakes: Suite = {
  ...bugs,
  name: "soak-mistakes",
  title: "Known mistakes, in the soak",
  promised: "The soak finds a server that holds on to something.",
  attacked: "Descriptors, timers, followers and ended processes are forgotten on purpose, one kind at a time.",
  command: ["soak", "--mistakes", "--seed", "1"],
  shown: { mistakes: "known" },
  demands: { ends: "holds", some: ["mistakes"], empty: ["missed"] },
};

/** A room by itself: a good one does not hide a bad one, and one can be run in less than an hour. */
const mutate = ({ name, scoreMin }: Room): Suite => ({
  name: `mutate-${name}`,
  title: `Mutation: ${MUTATED[name]}`,
  promised: `The tests notice at least ${scoreMin} % of all changes of this code.`,
  attacked: `The code of ${MUTATED[name]} is changed in small ways, one at a time.`,
  violation: "A change that no test notices.",
  command: ["mutate", "--room", name],
  shown: { score: "% noticed", killed: "noticed", survived: "not noticed", mutants: "changes" },
  demands: { ends: "holds", some: ["mutants"], atLeast: { score: scoreMin } },
});

const MUTATED: Readonly<Record<Room["name"], string>> = {
  core: "the core",
  engine: "the engine",
  store: "the stores",
  process: "the supervision of processes",
};

const failures: Suite = {
  name: "failures",
  title: "The failure map",
  promised: "Every way of failing that we know of has a test that shows what we promise for it, or a reason why not.",
  attacked: "The map below is checked against the ids of the tests, the known mistakes and the points of the suites.",
  violation: "A row without a test, or with an id that no test has, that two tests have, or whose test is skipped.",
  command: ["failures"],
  shown: { entries: "entries", mapped: "shown", doesNotApply: "do not apply", notYet: "of these not yet" },
  demands: { ends: "holds", zero: ["findings"], atLeast: { entries: 141 } },
};

export const TESTERS: readonly Suite[] = [
  ...[bugs, faultsMistakes, powerMistakes, powerNormal, powerLying, soakMistakes, ...rooms().map(mutate), failures],
];
