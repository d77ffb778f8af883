// `belay demo --hands-on`: an interactive session with the demo agent, to try every stop control.
import { rmSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { demoAgent } from "../../../demo/demo-agent.ts";
import { DEMO_PACE, type DemoPace } from "../../../demo/pace.ts";
import { type Belay, openBelay } from "../../../sdk/belay.ts";
import type { Session } from "../../../sdk/session.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { EXIT_OK, EXIT_SIGNAL, type StopSignal } from "../../shared/exit-code.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { newCode } from "../../shared/terminal/asked-question.ts";
import { Screen } from "../../shared/terminal/screen.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { HandsOnActions } from "./hands-on-actions.ts";
import { commandOf } from "./hands-on-input.ts";
import { HandsOnView } from "./hands-on-view.ts";
import { type Begun, PromptLine } from "./prompt-line.ts";

export interface HandsOnOptions {
  readonly pace: "reading" | "fast";
}

const PACES = {
  reading: { ...DEMO_PACE, graceMs: 1_500 },
  fast: { wordMs: 2, stepMs: 30, stubbornMs: 400, graceMs: 100 },
} as const satisfies Record<string, DemoPace & { readonly graceMs: number }>;

/** How long stopping may take after `quit`, and how long closing may take after that or after SIGTERM. */
const STOP_MS = 3_000;
const CLOSE_MS = 500;

/** How long running work may take after the last line of a pipe. */
const LINGER_MS = 30_000;

const GREETING = [
  "This is a demo: a real Belay on a real SQLite file, and an agent that is a script.",
  "Type: list, write, count, spawn, build, ask, stubborn, everything; several at once if you like.",
  "Then stop it: stop, stop run, stop NUMBER, Ctrl-C. There is more: help",
];

export async function runHandsOn({ pace }: HandsOnOptions): Promise<number> {
  let hands: HandsOn | undefined;
  // Handles signals from the start: before there is anything to stop, it exits at once.
  const unsubscribe = onStopSignals((signal) => hands?.onSignal(signal) ?? process.exit(EXIT_SIGNAL[signal]));
  const folder = await mkdtemp(join(tmpdir(), "belay-demo-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  // Runs at every exit.
  process.once("exit", remove);
  const { graceMs, ...demoPace } = PACES[pace];
  const files = join(folder, "files");
  await mkdir(files);
  const belay = await openBelay({
    agent: demoAgent({ folder: files, pace: demoPace }),
    store: join(folder, "belay.db"),
    graceMs,
    processes: { workspace: files },
    onNotice: (notice) => {
      if (notice.type === "late") hands?.late(notice.work);
    },
  });
  hands = new HandsOn(belay, await belay.createSession({ title: "hands-on demo" }));
  const code = await hands.play();
  unsubscribe();
  remove();
  print("Shut down: no work is running, and nothing is left behind.");
  return code;
}

class HandsOn {
  readonly #belay: Belay;
  readonly #session: Session;
  readonly #line: PromptLine;
  readonly #screen: Screen;
  readonly #view: HandsOnView;
  readonly #actions: HandsOnActions;
  readonly #left = Promise.withResolvers<number>();
  /** Commands are carried out one at a time, in the order in which they were typed. */
  #last: Promise<void> = Promise.resolve();
  #interrupted = false;
  /** The input has ended. */
  #inputEnded = false;

  constructor(belay: Belay, session: Session) {
    this.#belay = belay;
    this.#session = session;
    this.#line = new PromptLine(process.stdin, process.stdout, systemClock, {
      onLine: (text, begun) => this.#typed(text, begun),
      // A terminal in raw mode sends no signal for Ctrl-C, so this program sends it to itself.
      onInterrupt: () => process.kill(process.pid, "SIGINT"),
      onEnd: () => this.#end(),
    });
    this.#screen = new Screen(this.#line);
    // Without key-by-key input it is unknown when a line was begun, so each question is shown with a code.
    const needsCode = process.stdin.isTTY === true && !this.#line.terminal;
    this.#view = new HandsOnView(this.#screen, systemClock, needsCode ? newCode : undefined);
    this.#actions = new HandsOnActions({ belay, session, screen: this.#screen, view: this.#view });
    for (const line of GREETING) this.#screen.printRaw(line);
  }

  late(work: string): void {
    this.#screen.print("belay", `to the operator: ${work} came back late; its result was dropped`);
  }

  onSignal(signal: StopSignal): "leaving" | "staying" {
    if (signal === "SIGINT" && !this.#interrupted) {
      this.#interrupt();
      return "staying";
    }
    this.#left.resolve(EXIT_SIGNAL[signal]);
    return "leaving";
  }

  /** Runs until the user quits or a signal arrives, stops everything, and resolves with the exit code. */
  async play(): Promise<number> {
    const following = this.#follow();
    following.catch(this.#left.reject);
    const code = await this.#left.promise;
    // After SIGTERM and SIGHUP there is no time to show how the work ends.
    const hurry = code === EXIT_SIGNAL.SIGTERM || code === EXIT_SIGNAL.SIGHUP;
    if (!hurry) await this.#stopAll();
    await this.#belay.close({ mode: "cancel", limitMs: CLOSE_MS });
    await following;
    this.#line.close();
    return code;
  }

  async #follow(): Promise<void> {
    for await (const event of this.#session.events({ deltas: "with" })) {
      this.#view.show(event);
      if (event.type === "question.asked" && this.#inputEnded) this.#inTurn(() => this.#actions.cancelUnanswered());
    }
  }

  async #stopAll(): Promise<void> {
    await this.#session.cancel({ reason: "leaving", waitMs: STOP_MS });
    await Promise.race([this.#view.shown((await this.#session.explain()).asOf), sleep(CLOSE_MS)]);
  }

  #typed(text: string, begun: Begun): void {
    this.#interrupted = false;
    this.#inTurn(async () => {
      if (text.trim() !== "") this.#screen.print("you", text);
      const coded = begun === "unknown" ? this.#view.coded(text) : undefined;
      const command = commandOf(coded?.text ?? text);
      if (command.kind === "quit") this.#left.resolve(EXIT_OK);
      else await this.#actions.run(command, coded?.id ?? begun);
    });
  }

  #interrupt(): void {
    this.#interrupted = true;
    this.#inTurn(async () => {
      this.#screen.print("you", "Ctrl-C");
      await this.#actions.run({ kind: "stop-session", note: "Ctrl-C" });
      this.#screen.print("belay", "Ctrl-C again exits");
    });
  }

  /** Ctrl-D quits. At the end of a pipe, the prompts that it sent are still carried out. */
  #end(): void {
    this.#inputEnded = true;
    if (this.#line.terminal) {
      this.#left.resolve(EXIT_OK);
      return;
    }
    this.#inTurn(async () => {
      await this.#actions.cancelUnanswered();
      const all = Promise.allSettled(this.#actions.runs.map((run) => run.outcome));
      // Not awaited here: a question that is asked later is cancelled by its own turn in this queue.
      void Promise.race([all, sleep(LINGER_MS, undefined, { ref: false })]).then(() => this.#left.resolve(EXIT_OK));
    });
  }

  #inTurn(work: () => Promise<void>): void {
    this.#last = this.#last.then(work).catch(this.#left.reject);
  }
}
