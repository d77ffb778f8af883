// `belay demo`: demonstrates Belay's guarantees on a real store, in a temporary folder that is removed afterwards.

import { commandName } from "../../shared/command-name.ts";
import { EXIT_OK, EXIT_SIGNAL, type StopSignal } from "../../shared/exit-code.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { print, printHeading } from "../../shared/terminal/terminal.ts";
import { DemoContext, PACES } from "./demo-context.ts";
import * as processes from "./demo-processes.ts";
import * as prompts from "./demo-prompts.ts";
import * as stops from "./demo-stops.ts";

export interface DemoOptions {
  readonly pace: keyof typeof PACES;
}

/** Plays to the end, or until a signal; then it shuts down gracefully. */
export async function runDemo({ pace }: DemoOptions): Promise<number> {
  const leave = new AbortController();
  let stopped: StopSignal | undefined;
  const unsubscribe = onStopSignals((signal) => {
    stopped = signal;
    leave.abort();
    return "leaving";
  });
  const context = await DemoContext.build(PACES[pace], leave.signal);
  try {
    await play(context);
    return EXIT_OK;
  } catch (error) {
    if (stopped === undefined) throw error;
    print("\nStopped, as asked. Nothing is left behind.");
    return EXIT_SIGNAL[stopped];
  } finally {
    await context.close();
    unsubscribe();
  }
}

async function play(context: DemoContext): Promise<void> {
  print(
    "Belay keeps AI agents under control: prompts are accepted, run one at a time, and can be stopped from anywhere.",
  );
  print("This is a demo: a real Belay on a real SQLite file, real files and processes, and an agent that is a script.");
  const belay = await context.open();
  const session = await belay.createSession({ title: "demo" });
  await context.pause();
  await prompts.prompts(context, session);
  await prompts.queues(context, session);
  await prompts.steers(context, session);
  await prompts.approves(context, session);
  await stops.stopsCall(context, session);
  await processes.stopsTree(context, session);
  await processes.reportsBack(context, session);
  await stops.stopsStubborn(context, session);
  await stops.stopsSession(context, session);
  await stops.stopsNothing(context, session);
  await prompts.restarts(context, session);
  printHeading("That was it");
  print("  README.md      fifteen lines of your own, with a cancel in them");
  print("  examples/      one short program for each of the steps above");
  print("  belay verify   checks the log of any Belay file against its promises");
  print("  belay doctor   says how surely processes can be ended on this machine, and how to do better");
  print(`\nNow with your own fingers on every stop button: ${commandName()} demo --hands-on`);
  print("\ndone");
}
