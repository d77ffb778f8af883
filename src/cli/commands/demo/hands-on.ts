// `belay demo --hands-on`: the demo agent, and every stop button there is, under your own fingers.
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

/** What stopping may take once somebody wants to leave, and closing after that, or when the system wants us gone. */
const STOP_MS = 3_000;
const CLOSE_MS = 500;

/** After the last line of a pipe, what is going on may take this long. */
const LINGER_MS = 30_000;

/** What this is, and how to begin; the rest is found by typing. */
const GREETING = [
  "This is a demo: a real Belay on a real SQLite file, and an agent that is a script.",
  "Say: list, write, count, spawn, build, ask, stubborn, everything; several at once if you like.",
  "Then stop it: stop, stop run, stop NUMBER, Ctrl-C. There is more: help",
];

export async function runHandsOn({ pace }: HandsOnOptions): Promise<number> {
  let hands: HandsOn | undefined;
  // Heard from the first moment on: before there is anything to stop in order, leaving at once is in order.
  const dispose = onStopSignals((signal) => hands?.hear(signal) ?? process.exit(EXIT_SIGNAL[signal]));
  const folder = await mkdtemp(join(tmpdir(), "belay-demo-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  // At the very end, whichever way that comes.
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
  dispose();
  remove();
  print("Left in order: nothing is going on any more, and nothing is left behind.");
  return code;
}

class HandsOn {
  readonly #belay: Belay;
  readonly #session: Session;
  readonly #line: PromptLine;
  readonly #screen: Screen;
  readonly #view: HandsOnView;
  readonly #context: HandsOnActions;
  readonly #left = Promise.withResolvers<number>();
  /** What was typed is carried out in the order in which it was typed. */
  #last: Promise<void> = Promise.resolve();
  #interrupted = false;
  /** Nobody types any more. */
  #alone = false;

  constructor(belay: Belay, session: Session) {
    this.#belay = belay;
    this.#session = session;
    this.#line = new PromptLine(process.stdin, process.stdout, systemClock, {
      onLine: (text, begun) => this.#typed(text, begun),
      // A terminal that is read key by key sends no signal for Ctrl-C. Sent to ourselves, it is heard like any other.
      onInterrupt: () => process.kill(process.pid, "SIGINT"),
      onEnd: () => this.#end(),
    });
    this.#screen = new Screen(this.#line);
    const isBlind = process.stdin.isTTY === true && !this.#line.terminal;
    this.#view = new HandsOnView(this.#screen, systemClock, isBlind ? newCode : undefined);
    this.#context = new HandsOnActions({ belay, session, screen: this.#screen, view: this.#view });
    for (const line of GREETING) this.#screen.raw(line);
  }

  late(work: string): void {
    this.#screen.say("belay", `to the operator: ${work} came back late; its result was dropped`);
  }

  hear(signal: StopSignal): "leaving" | "staying" {
    if (signal === "SIGINT" && !this.#interrupted) {
      this.#interrupt();
      return "staying";
    }
    this.#left.resolve(EXIT_SIGNAL[signal]);
    return "leaving";
  }

  /** Until somebody leaves. Then everything is stopped, and the answer is the exit code. */
  async play(): Promise<number> {
    const following = this.#follow();
    following.catch(this.#left.reject);
    const code = await this.#left.promise;
    // Asked to go by the system: there is no time to show how it ends.
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
      if (event.type === "question.asked" && this.#alone) this.#inTurn(() => this.#context.cancelUnanswered());
    }
  }

  async #stopAll(): Promise<void> {
    await this.#session.cancel({ reason: "leaving", waitMs: STOP_MS });
    await Promise.race([this.#view.shown((await this.#session.explain()).asOf), sleep(CLOSE_MS)]);
  }

  #typed(text: string, begun: Begun): void {
    this.#interrupted = false;
    this.#inTurn(async () => {
      if (text.trim() !== "") this.#screen.say("you", text);
      const coded = begun === "unknown" ? this.#view.coded(text) : undefined;
      const command = commandOf(coded?.text ?? text);
      if (command.kind === "quit") this.#left.resolve(EXIT_OK);
      else await this.#context.run(command, coded?.id ?? begun);
    });
  }

  #interrupt(): void {
    this.#interrupted = true;
    this.#inTurn(async () => {
      this.#screen.say("you", "Ctrl-C");
      await this.#context.run({ kind: "stop-session", note: "Ctrl-C" });
      this.#screen.say("belay", "Ctrl-C again leaves");
    });
  }

  /** Ctrl-D leaves. A pipe has only said all it had to say: what it asked for is still done. */
  #end(): void {
    this.#alone = true;
    if (this.#line.terminal) {
      this.#left.resolve(EXIT_OK);
      return;
    }
    this.#inTurn(async () => {
      await this.#context.cancelUnanswered();
      const all = Promise.allSettled(this.#context.runs.map((run) => run.outcome));
      // Not awaited here: a question may still be asked, and is then taken back in its turn.
      void Promise.race([all, sleep(LINGER_MS, undefined, { ref: false })]).then(() => this.#left.resolve(EXIT_OK));
    });
  }

  #inTurn(work: () => Promise<void>): void {
    this.#last = this.#last.then(work).catch(this.#left.reject);
  }
}
