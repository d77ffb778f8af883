// Every promise of the API, awaited in a loop by agent code that holds its own Belay. The tables are typed by the
// interfaces: a new method without a case does not compile.
import { expect, test } from "vitest";
import { openTestBelay } from "../../test/fixtures/belay.ts";
import type { AnswersControl, ProcessControl, ProcessesControl, QueueControl, RunControl } from "../ports/control.ts";
import { systemClock } from "../system/system-clock.ts";
import { scriptedSpawner } from "../testing/scripted-spawner.ts";
import type { Belay } from "./belay.ts";
import type { Session } from "./session.ts";

/** Every method, except those that end the Belay or a session, and those that only a client waits for. */
type Awaited<T> = Exclude<
  {
    [K in keyof T]-?: NonNullable<T[K]> extends Promise<unknown>
      ? K
      : NonNullable<T[K]> extends (...given: never) => infer R
        ? R extends Promise<unknown> | AsyncIterator<unknown>
          ? K
          : never
        : never;
  }[keyof T],
  "close" | "closed" | "delete" | "endInput" | typeof Symbol.asyncDispose
>;
type Cases<T> = { readonly [K in Awaited<T>]: (of: T) => Promise<unknown> };

const gone = AbortSignal.abort();

const ofBelay = {
  createSession: (belay) => belay.createSession(),
  sessions: (belay) => belay.sessions(),
  ids: (belay) => belay.ids("ses_"),
  run: (belay) => belay.run("run_none"),
  call: (belay) => belay.call("call_none"),
  cancel: (belay) => belay.cancel("run_none"),
  cancelPrompt: (belay) => belay.cancelPrompt("none"),
  cancelAll: (belay) => belay.cancelAll({ tenant: "none" }),
  live: (belay) => belay.live(),
  findSession: (belay) => belay.findSession("run_none"),
  events: (belay) => belay.events({ signal: gone }).next(),
  status: (belay) => belay.status(),
} satisfies Cases<Belay>;

const ofSession = {
  row: (session) => session.row(),
  cancel: (session) => session.cancel(),
  call: (session) => session.call("call_none"),
  cancelCall: (session) => session.cancelCall("call_none"),
  cancelPrompt: (session) => session.cancelPrompt("none"),
  events: (session) => session.events().next(),
  pages: (session) => session.pages().next(),
  transcript: (session) => session.transcript(),
  questions: (session) => session.questions(),
  post: (session) => session.post({ kind: "note", text: "hello" } as never),
  setMode: (session) => session.setMode("none"),
  explain: (session) => session.explain(),
  trim: (session) => session.trim(1),
  findRun: (session) => session.findRun("none"),
  runs: (session) => session.runs(),
} satisfies Cases<Session>;

const ends = { close: (session: Session) => session.close(), delete: (session: Session) => session.delete() };

const ofQueue = {
  list: (queue) => queue.list(),
  edit: (queue) => queue.edit("run_none", "other"),
  move: (queue) => queue.move("run_none", "front"),
  withdraw: (queue) => queue.withdraw("run_none"),
  steer: (queue) => queue.steer("run_none"),
  clear: (queue) => queue.clear(),
} satisfies Cases<QueueControl>;

const ofAnswers = {
  allow: (answers) => answers.allow("ask_none"),
  deny: (answers) => answers.deny("ask_none"),
  answer: (answers) => answers.answer("ask_none", "yes"),
} satisfies Cases<AnswersControl>;

const ofProcesses = {
  get: (processes) => processes.get("proc_none"),
  list: (processes) => processes.list(),
  history: (processes) => processes.history(),
} satisfies Cases<ProcessesControl>;

const ofProcess = {
  wait: (handle) => handle.wait({ limitMs: 0 }),
  cancel: (handle) => handle.cancel(),
  write: (handle) => handle.write("text"),
  resize: (handle) => handle.resize({ columns: 80, rows: 25 }),
  read: (handle) => handle.read(),
  follow: (handle) => handle.follow({ signal: gone }).next(),
} satisfies Cases<ProcessControl>;

const ofRun = {
  accepted: (run) => run.accepted,
  outcome: (run) => run.outcome,
  row: (run) => run.row(),
  cancel: (run) => run.cancel(),
  text: (run) => run.text(),
  result: (run) => run.result(),
  view: (run) => run.view(),
  [Symbol.asyncIterator]: (run) => run[Symbol.asyncIterator]().next(),
} satisfies Cases<RunControl>;

interface Given {
  readonly belay: Belay;
  /** Live: the session whose agent loops. */
  readonly session: Session;
  readonly run: RunControl;
  /** An idle session, and a closed one. */
  readonly idle: Session;
  readonly closed: Session;
  readonly settled: RunControl;
  readonly process: ProcessControl;
}

type Step = readonly [string, (given: Given) => Promise<unknown> | undefined];

const steps = <T>(
  name: string,
  cases: Readonly<Record<string | symbol, (of: T) => Promise<unknown>>>,
  of: (given: Given) => T,
): Step[] => Reflect.ownKeys(cases).map((key) => [`${name}.${String(key)}`, (given) => cases[key]?.(of(given))]);

const loops: readonly Step[] = [
  ...steps<Belay>("belay", ofBelay, ({ belay }) => belay),
  ...steps<Session>("a live session", { ...ofSession, ...ends }, ({ session }) => session),
  ...steps<Session>("an idle session", ofSession, ({ idle }) => idle),
  ...steps<Session>("a closed session", { ...ofSession, ...ends }, ({ closed }) => closed),
  ...steps<QueueControl>("queue", ofQueue, ({ session }) => session.queue),
  ...steps<AnswersControl>("questions", ofAnswers, ({ belay }) => belay.questions),
  ...steps<ProcessesControl>("session.processes", ofProcesses, ({ session }) => session.processes),
  ...steps<RunControl>("a live run", without(ofRun, "outcome", "text", "result"), ({ run }) => run),
  ...steps<RunControl>("a settled run", ofRun, ({ settled }) => settled),
  ["a prompt that is refused", ({ closed }) => closed.prompt("more").accepted],
  ["the outcome of a prompt that is refused", ({ closed }) => closed.prompt("more").outcome],
  ["a process of a closed session", ({ closed }) => closed.processes.start(["sleep", "60"])],
  ...steps<ProcessControl>("a process", ofProcess, ({ process }) => process),
  ["the events of a settled run", ({ settled }) => Array.fromAsync(settled)],
];

function without<T extends object, K extends keyof T>(cases: T, ...names: readonly K[]): Omit<T, K> {
  const rest = { ...cases };
  for (const name of names) delete rest[name];
  return rest;
}

/** Without a gate the loop ends here, so the test fails instead of hanging. */
const ROUNDS_MAX = 20_000;

class Loop {
  rounds = 0;
  over = false;

  async run(step: () => unknown): Promise<void> {
    for (; !this.over && this.rounds < ROUNDS_MAX; this.rounds += 1) {
      try {
        await step();
      } catch {
        // Continues.
      }
    }
  }
}

const timer = (): Promise<void> => new Promise((resolve) => systemClock.after(0, resolve));

test.each(loops)("G12: a loop over %s starves no timer", async (_, step) => {
  const loop = new Loop();
  const holder: { given?: Given } = {};
  const { belay, began } = await openTestBelay(
    {
      loop: async () => {
        const { given } = holder;
        if (given === undefined) throw new Error("Nothing to loop over was given.");
        await loop.run(() => step(given));
        return "done";
      },
    },
    { processes: { spawner: scriptedSpawner({ clock: systemClock }) } },
  );
  const closed = await belay.createSession();
  await closed.close();
  const idle = await belay.createSession();
  const settled = idle.prompt("hello");
  await settled.outcome;
  const session = await belay.createSession();
  const process = await idle.processes.start(["sleep", "60"], { feedback: "silent" });
  const run = session.prompt("loop");
  holder.given = { belay, session, run, idle, closed, settled, process };
  await began("loop");
  await timer();
  loop.over = true;
  expect(loop.rounds).toBeLessThan(ROUNDS_MAX);
  await belay.close();
});
