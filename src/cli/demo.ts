// `belay demo`: Belay's promises, kept before your eyes. On a real store, in a folder of its own that it takes away.

import { PACES } from "./demo-agent.ts";
import * as scenes from "./demo-scenes.ts";
import { Stage } from "./demo-stage.ts";
import { EXIT_OK, EXIT_SIGNAL, type StopSignal } from "./exit-code.ts";
import { print, printHeading } from "./terminal.ts";

export interface DemoOptions {
  readonly pace: keyof typeof PACES;
}

/** Plays to the end, or until a signal asks it to stop; then it stops at once, in order. */
export async function runDemo({ pace }: DemoOptions): Promise<number> {
  const leave = new AbortController();
  let stopped: StopSignal | undefined;
  const onSignal = (signal: StopSignal): void => {
    stopped = signal;
    leave.abort();
  };
  // Once each: whoever presses Ctrl-C a second time means it.
  process.once("SIGINT", onSignal);
  process.once("SIGTERM", onSignal);
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
    process.removeListener("SIGINT", onSignal);
    process.removeListener("SIGTERM", onSignal);
  }
}

async function play(stage: Stage): Promise<void> {
  print(
    "Belay keeps AI agents under control: prompts are accepted, run one at a time, and can be stopped from anywhere.",
  );
  print("This is a real Belay on a real SQLite file, with a scripted agent. It takes about fifteen seconds.");
  const belay = await stage.open();
  const session = await belay.createSession({ title: "demo" });
  await stage.pause();
  await scenes.prompts(stage, session);
  await scenes.queues(stage, session);
  await scenes.steers(stage, session);
  await scenes.cancelsCall(stage, session);
  await scenes.cancelsDeaf(stage, session);
  await scenes.cancelsSession(stage, session);
  await scenes.cancelsNothing(stage, session);
  await scenes.restarts(stage, session);
  printHeading("That was it");
  print("  README.md      fifteen lines of your own, with a cancel in them");
  print("  examples/      one short program for each of the scenes above");
  print("  belay verify   checks the log of any Belay file against its promises");
  print("\ndone");
}
