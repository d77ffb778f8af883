// `belay demo`: Belay's promises, kept before your eyes. On a real store, in a folder of its own that it takes away.

import { commandName } from "../../shared/command-name.ts";
import { EXIT_OK, EXIT_SIGNAL, type StopSignal } from "../../shared/exit-code.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { print, printHeading } from "../../shared/terminal/terminal.ts";
import * as processes from "./demo-processes.ts";
import * as scenes from "./demo-scenes.ts";
import { PACES, Stage } from "./demo-stage.ts";
import * as stops from "./demo-stops.ts";

export interface DemoOptions {
  readonly pace: keyof typeof PACES;
}

/** Plays to the end, or until a signal asks it to stop; then it stops at once, in order. */
export async function runDemo({ pace }: DemoOptions): Promise<number> {
  const leave = new AbortController();
  let stopped: StopSignal | undefined;
  const dispose = onStopSignals((signal) => {
    stopped = signal;
    leave.abort();
    return "leaving";
  });
  const stage = await Stage.build(PACES[pace], leave.signal);
  try {
    await play(stage);
    return EXIT_OK;
  } catch (error) {
    if (stopped === undefined) throw error;
    print("\nStopped, as asked. Nothing is left behind.");
    return EXIT_SIGNAL[stopped];
  } finally {
    await stage.close();
    dispose();
  }
}

async function play(stage: Stage): Promise<void> {
  print(
    "Belay keeps AI agents under control: prompts are accepted, run one at a time, and can be stopped from anywhere.",
  );
  print("This is a demo: a real Belay on a real SQLite file, real files and processes, and an agent that is a script.");
  const belay = await stage.open();
  const session = await belay.createSession({ title: "demo" });
  await stage.pause();
  await scenes.prompts(stage, session);
  await scenes.queues(stage, session);
  await scenes.steers(stage, session);
  await scenes.approves(stage, session);
  await stops.stopsCall(stage, session);
  await processes.stopsTree(stage, session);
  await processes.reportsBack(stage, session);
  await stops.stopsStubborn(stage, session);
  await stops.stopsSession(stage, session);
  await stops.stopsNothing(stage, session);
  await scenes.restarts(stage, session);
  printHeading("That was it");
  print("  README.md      fifteen lines of your own, with a cancel in them");
  print("  examples/      one short program for each of the scenes above");
  print("  belay verify   checks the log of any Belay file against its promises");
  print("  belay doctor   says how surely processes can be ended on this machine, and how to do better");
  print(`\nNow with your own fingers on every stop button: ${commandName()} demo --hands-on`);
  print("\ndone");
}
