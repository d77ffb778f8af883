// Known mistakes in dealing with a store in trouble, as changes of the source. The faults must give each away.
import { type Bug, bug } from "../../sim/bugs/bug.ts";

const COMMIT = "src/engine/commit.ts";
const DISPATCH = "src/engine/dispatch.ts";
const ENGINE = "src/engine/engine.ts";

export const MISTAKES: readonly Bug[] = [
  bug(
    "lost-answer-taken-for-no",
    "An append whose answer was lost is taken for one that did not happen, and made again.",
    COMMIT,
    "lane.doubt ||= !WROTE_NOTHING.has(error.code);",
    "lane.doubt = false;",
  ),
  bug(
    "fault-swallowed",
    "An append that failed is answered as if it had been written.",
    COMMIT,
    "lane.unsure = { entries: lane.flying, events, read: [] };",
    "return this.#landed(lane, events, at);",
  ),
  bug(
    "refused-and-recorded",
    "A prompt is refused because the store is full, and recorded when it is not full any more.",
    COMMIT,
    "const kept = entries.filter((entry) => isLasting(entry.command));",
    'const kept = entries.filter((entry) => isLasting(entry.command) || entry.command.type === "accept");',
  ),
  bug(
    "refused-stays-decided",
    "What was refused stays in the state that the next decisions are made on.",
    COMMIT,
    "    lane.flying = [];\n    lane.pending = [];\n    lane.decided = lane.durable;\n    const kept",
    "    lane.flying = [];\n    lane.pending = [];\n    const kept",
  ),
  bug(
    "end-of-work-refused",
    "The end of a turn that the store could not record is forgotten, and its run never ends.",
    COMMIT,
    '  "settle-turn",\n  "settle-call",\n',
    '  "settle-call",\n',
  ),
  bug(
    "never-tried-again",
    "What cannot be refused is kept, and nobody tries to record it once the store is well again.",
    COMMIT,
    "lane.takeBackRetry = this.#clock.after(pause, () => void this.#retry(lane));",
    "void pause;",
  ),
  bug(
    "stop-told-before-it-is-recorded",
    "Whoever stops something is told so while the store has not recorded it; a crash takes it back.",
    COMMIT,
    "else if (isCancel(entry.command)) notRecorded(entry, error);",
    "else if (isCancel(entry.command)) entry.resolve(entry.answer);",
  ),
  bug(
    "closed-house-keeps-callers-waiting",
    "Whoever waits for a store that hangs waits for ever, also when the house has closed.",
    "src/engine/shutdown.ts",
    "  engine.commit.leave(engine.lanes.all());\n",
    "",
  ),
  bug(
    "place-kept-by-a-failed-start",
    "A start that the store refuses keeps its place among the live runs.",
    DISPATCH,
    "this.#free(lane);\n    if (pauseMs",
    "if (pauseMs",
  ),
  bug(
    "refused-run-keeps-its-home",
    "What is remembered of a run that was refused is never forgotten.",
    ENGINE,
    "        this.lanes.moveOut(runId);\n        throw error;",
    "        throw error;",
  ),
  bug(
    "session-not-loaded-again",
    "A session that could not be loaded once is not looked at again, although its lease is held.",
    "src/engine/lanes.ts",
    "      this.#parts.unloaded(lane.id);\n",
    "",
  ),
  bug(
    "key-looked-up-in-vain",
    "A prompt whose key could not be looked up is taken for a new one.",
    ENGINE,
    "const row = await this.store.run({ session: lane.id, key });",
    "const row = await this.store.run({ session: lane.id, key }).catch(() => undefined);",
  ),
  bug(
    "late-answer-goes-on",
    "An answer that comes after the house has closed sets things in motion again.",
    COMMIT,
    '      lane.phase = "gone";\n      lane.flying = [];\n      lane.pending = [];\n      for (const entry of sent)',
    "      lane.flying = [];\n      lane.pending = [];\n      for (const entry of sent)",
  ),
];
