// What is said of the benches whose goals are promises: what a stop costs, and many commands at once.
import type { Suite } from "./published-suite.ts";

const stopping: Suite = {
  name: "stopping",
  title: "What a stop costs",
  promised:
    "A stop is received and carried out at once, whatever else happens: 99 of 100 stops of a run or a session in a " +
    "browser have their receipt within 100 ms, 1,000 model streams that are stopped at once have theirs within 100 " +
    "ms, and a process tree is dead within 2 s.",
  attacked:
    "Ten tabs of a real Chromium follow fifty runs each and wait for their outcomes, over a WebSocket and without " +
    "any; 1,000 streams and 1,000 calls are stopped at once; trees are stopped while others fork as fast as they can.",
  violation: "A goal that is missed.",
  command: ["bench", "--only", "stopping"],
  shown: {
    ...{ "ours.browserStopP50Ms": "stop of a run in a browser, median, ms", "ours.browserStopP99Ms": "99 %, ms" },
    ...{
      "ours.browserStopSessionP99Ms": "of a session, 99 %, ms",
      "ours.browserStopAllP50Ms": "of all 500, median, ms",
    },
    ...{ "ours.noSocketStopP50Ms": "without a WebSocket, median, ms", "ours.noSocketStopP99Ms": "the same, 99 %, ms" },
    ...{ "floor.browserRequestP50Ms": "a bare request there, median, ms", "floor.browserRequestP99Ms": "and 99 %, ms" },
    ...{
      "ours.streamsReceiptsMs": "1,000 streams, to the receipts, ms",
      "ours.streamsOutcomesMs": "to the outcomes, ms",
    },
    ...{ "ours.stormsCancelToDeadMaxMs": "a tree while others fork, to its death, slowest, ms" },
  },
  demands: { ends: "holds", empty: ["missed"], some: ["ours.browserStopP99Ms", "ours.noSocketStopP99Ms"] },
};

const crowd: Suite = {
  name: "crowd",
  title: "Many commands at once",
  promised:
    "However many commands are started at one server at the same time, each gets its answer, and a stop among them " +
    "is carried out.",
  attacked: "120 `belay run` are started at once. Then `belay cancel` is typed while 80 others start.",
  violation: "A run that does not complete, or a stop that is not carried out.",
  command: ["bench", "--only", "crowd"],
  shown: {
    ...{ "ours.crowdRuns": "`belay run` at once", "ours.crowdRunsCompleted": "completed" },
    ...{ "ours.crowdRunP50Seconds": "s, median", "ours.crowdRunMaxSeconds": "s, slowest" },
    ...{ "floor.crowdNodeMaxSeconds": "s, slowest of as many programs that do nothing" },
    ...{ "ours.crowdCancels": "`belay cancel` in the crowd", "ours.crowdRunsCancelled": "carried out" },
    ...{ "ours.crowdCancelMaxSeconds": "s from typing to the end of the slowest" },
  },
  demands: {
    ends: "holds",
    empty: ["missed"],
    same: ["ours.crowdRuns", "ours.crowdRunsCompleted"],
    atLeast: { "ours.crowdRuns": 120, "ours.crowdRunsCancelled": 5 },
  },
};

export const SPEED: readonly Suite[] = [stopping, crowd];
