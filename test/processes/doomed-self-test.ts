// A server that will be killed during a self-test: it prints when it has reached the given moment, and stops there.
// Arguments: the workspace, the mechanism, and the moment.
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

/**
 * `gate`: the command has not begun. The others: the hostile process runs, in the trial of a stop or of a killed
 * server.
 */
export type Moment = "gate" | "stop" | "server-killed";

const [workspace = "", tested = "", moment] = process.argv.slice(2);
const clock = systemClock;

/** Blocks this thread: nothing here continues or is cleaned up. */
function block(): never {
  writeSync(1, "there\n");
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

/** Holds no process. */
const nothing: Containment = {
  ...{ mechanism: "group", tier: "group", profiles: ["none"] },
  wrap: (plan) => ({ file: SHELL, args: ["-c", leaderScript(), "belay", ...gateArguments(plan)] }),
  hold: ({ identity }) => ({
    ...{ pid: childrenOf(identity.pid)[0] ?? 0, identity, sendSigterm: () => undefined, force: () => undefined },
    ...{ left: () => [], verify: async () => ({ killed: 0, left: [] }) },
  }),
};

/** Its leader reports ready, and then hangs. */
const hanging: Containment = {
  ...nothing,
  wrap: () => ({ file: SHELL, args: ["-c", `echo ${READY} >&${STATUS_FD}; exec sleep 600`] }),
};

const processTable =
  tested === "ps" ? new PsProcessTable({ clock, program: findProgram("ps") ?? "ps", dialect: "linux" }) : undefined;
const seen = processTable === undefined ? {} : { processTable };

function made(): Containment | undefined {
  if (tested === "nothing") return nothing;
  if (tested === "hanging") return hanging;
  const mechanism = tested === "ps" ? "group" : (tested as Mechanism);
  return makeContainment(mechanism, { machine: lookAtMachine(), stateDir: workspace, workspace, clock, ...seen });
}

/** The first is for the trial of a stop, the second for that of a killed server. One of them at a time. */
const wanted = moment === "server-killed" ? [false, true] : [true, false];

function make(): Containment | undefined {
  const real = wanted.shift() === true ? made() : undefined;
  if (real === undefined || moment !== "gate") return real;
  return {
    ...real,
    hold: (leader, plan) => {
      real.hold(leader, plan);
      return block();
    },
  };
}

await selfTest({
  workspace,
  make,
  ...seen,
  // The first timeout that is cancelled is that for the hostile process.
  clock: {
    ...clock,
    after: (ms, call, kind) => {
      const dispose = clock.after(ms, call, kind);
      return () => {
        dispose();
        block();
      };
    },
  },
});
