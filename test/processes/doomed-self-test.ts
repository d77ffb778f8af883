// A server that will be killed in the midst of a self-test: it says when it has come so far, and goes no further.
// Its arguments: the workspace, what is tested, and the moment.
import { writeSync } from "node:fs";
import type { Mechanism } from "../../src/ports/spawner.ts";
import type { Containment } from "../../src/process/containment/containment.ts";
import { lookAtMachine } from "../../src/process/containment/machine.ts";
import { makeContainment } from "../../src/process/containment/mechanisms.ts";
import { selfTest } from "../../src/process/containment/self-test.ts";
import { gateArguments, leaderScript, READY, SHELL, STATUS_FD } from "../../src/process/launch/gate.ts";
import { findProgram } from "../../src/process/launch/program-lookup.ts";
import { childrenOf } from "../../src/process/tree/proc.ts";
import { PsProcessTable } from "../../src/process/tree/ps-process-table.ts";
import { systemClock } from "../../src/system/system-clock.ts";

/** `gate`: the command has not begun. The others: the hostile process is up, in the trial of a stop or of a death. */
export type Moment = "gate" | "stop" | "server-killed";

const [workspace = "", tested = "", moment] = process.argv.slice(2);
const clock = systemClock;

/** Nothing that is under way here goes on, and nothing is tidied. */
function stand(): never {
  writeSync(1, "there\n");
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

/** Holds nobody. */
const nothing: Containment = {
  ...{ mechanism: "group", tier: "group", profiles: ["none"] },
  wrap: (plan) => ({ file: SHELL, args: ["-c", leaderScript(), "belay", ...gateArguments(plan)] }),
  hold: ({ identity }) => ({
    ...{ pid: childrenOf(identity.pid)[0] ?? 0, identity, ask: () => undefined, force: () => undefined },
    ...{ left: () => [], verify: async () => ({ killed: 0, left: [] }) },
  }),
};

/** Its leader says that all is well, and then hears nothing any more. */
const hanging: Containment = {
  ...nothing,
  wrap: () => ({ file: SHELL, args: ["-c", `echo ${READY} >&${STATUS_FD}; exec sleep 600`] }),
};

const sight =
  tested === "ps" ? new PsProcessTable({ clock, program: findProgram("ps") ?? "ps", dialect: "linux" }) : undefined;
const seen = sight === undefined ? {} : { processTable: sight };

function made(): Containment | undefined {
  if (tested === "nothing") return nothing;
  if (tested === "hanging") return hanging;
  const mechanism = tested === "ps" ? "group" : (tested as Mechanism);
  return makeContainment(mechanism, { machine: lookAtMachine(), stateDir: workspace, workspace, clock, ...seen });
}

/** The first is for the trial of a stop, the second for that of a death. One of them at a time. */
const wanted = moment === "server-killed" ? [false, true] : [true, false];

function make(): Containment | undefined {
  const real = wanted.shift() === true ? made() : undefined;
  if (real === undefined || moment !== "gate") return real;
  return {
    ...real,
    hold: (leader, plan) => {
      real.hold(leader, plan);
      return stand();
    },
  };
}

await selfTest({
  workspace,
  make,
  ...seen,
  // The first that is waited for is that the hostile process is up.
  clock: {
    ...clock,
    after: (ms, call, kind) => {
      const dispose = clock.after(ms, call, kind);
      return () => {
        dispose();
        stand();
      };
    },
  },
});
