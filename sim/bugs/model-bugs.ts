// Mistakes of the loop over a model: what it asks, when it stops, what it reports, and what that has cost.
import ts from "typescript";
import type { RequestContext } from "../../src/agent/model/ask-model.ts";
import type { TranscriptResult } from "../../src/core/read/transcript.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { type Mistake, mistake } from "../../test/mistakes/mistake.ts";
import { inline, type Place } from "../../test/mistakes/place.ts";
import type { Bug } from "./bug.ts";

/** A mistake that is looked for where the real loop is. */
const inLoop = (...[name, about, edit]: Parameters<typeof mistake>): Bug => ({
  ...mistake(name, about, edit),
  focus: "model",
});

/** The call that reads the elapsed time reads the time of day instead. */
function readsTheWall(at: Place): ReturnType<Place["become"]> {
  const read = at.find(ts.isCallExpression, "a call");
  return read.become(inline((clock: Clock) => clock.now(), read.target()));
}

const SILENCE_BY_THE_WALL: Mistake["edits"] = { begin: readsTheWall, part: readsTheWall, left: readsTheWall };

/** Which component a stop reaches, and which one continues. */
const STOPS: readonly Bug[] = [
  inLoop(
    "backoff-not-cut",
    "A stop that comes between two attempts takes effect only when the pause is over.",
    (at) => {
      const pause = at.value().value();
      return pause.become(
        inline(
          (means: RequestContext, ms: number) =>
            new Promise<void>((resolve) => void means.turn.clock.after(ms, resolve)),
          at.param(1),
          pause.arg(0, 1),
        ),
      );
    },
  ),
  inLoop(
    "asked-again-after-the-stop",
    "A stop that comes between two attempts ends the pause, and the model is asked once more.",
    {
      begin: (at) => at.remove(),
      pause: (at) => at.value().value().after(".catch(() => undefined)"),
    },
  ),
  inLoop(
    "provider-not-told",
    "A stop ends the turn, and the provider continues its answer (Anthropic SDK#867: the connection stays open).",
    (at) => at.remove(),
  ),
  inLoop("late-answer-left-open", "An answer that begins after the turn has left is never closed.", (at) =>
    at.remove(),
  ),
  inLoop(
    "stop-between-answer-and-reading",
    "A stop in the moment in which the answer begins is missed, and a provider that ignores it is read without end.",
    (at) => at.remove(),
  ),
  inLoop("stream-not-let-go", "A stop while an answer comes in waits for the next piece of it.", (at) =>
    at.value().right().become("() => {}"),
  ),
  inLoop(
    "deaf-tool-begins-after-its-stop",
    "A tool that cannot stop half-way begins after it was stopped, because its input was still being checked.",
    {
      check: (at) => at.value().become(`await ${at.value().whenFalse().text}`),
      going: (at) => at.remove(),
    },
  ),
  inLoop("transcript-awaited-after-the-stop", "A turn that is stopped while the log is read waits for the log.", (at) =>
    at.value().value().become(at.value().value().arg(0, 1).text),
  ),
];

/** How often the model is asked, and how long the loop waits for it. */
const ASKS: readonly Bug[] = [
  inLoop(
    "answered-in-part-asked-again",
    "A request whose answer broke off is made again, and people read two beginnings.",
    (at) => at.condition().operand(0, 3).drop(),
  ),
  inLoop("refused-for-good-asked-again", "A request that the provider rejects is made again and again.", (at) =>
    at.condition().operand(1, 3).drop(),
  ),
  inLoop("attempts-without-end", "A provider that is down is asked without end.", (at) =>
    at.condition().operand(2, 3).right().before("10 * "),
  ),
  inLoop("no-pause-between-attempts", "A provider that is busy is asked again at once.", (at) =>
    at.value().value().arg(0, 1).become("0"),
  ),
  inLoop("retry-after-ignored", "A provider says when it wants to be asked again, and is asked before that.", (at) => {
    const pause = at.value().arg(1, 2);
    const first = pause.right().left().text;
    return pause.become(`Math.min(${pause.left().text} ?? ${first}, ${first})`);
  }),
  inLoop(
    "silence-not-noticed",
    "A provider that has begun to answer and falls silent is waited for without end (Codex: 300 s of silence).",
    (at) => at.whenTrue().become("return;"),
  ),
  inLoop("silence-from-the-beginning", "A long answer is cut off, because its signs of life do not count.", (at) =>
    at.remove(),
  ),
  inLoop("silence-by-the-wall", "How long a provider is silent is measured with the wall clock.", SILENCE_BY_THE_WALL),
  inLoop("one-turn-too-many", "A run whose turns are used up gets one more.", (at) =>
    at.condition().become(`${at.condition().left().text} > ${at.condition().right().text}`),
  ),
  inLoop("answers-cost-nothing", "The output of a model does not count against the budget.", (at) => {
    const spent = at.condition().operand(1, 2).left();
    return spent.become(spent.left().text);
  }),
];

/** What the model, the log and the bill receive. */
const TELLS: readonly Bug[] = [
  inLoop("cost-lost-with-the-stop", "A turn that is stopped or fails has cost nothing.", (at) => at.remove()),
  inLoop("cost-of-an-attempt-forgotten", "The cost of an attempt that came to nothing is forgotten with it.", (at) =>
    at.remove(),
  ),
  inLoop("refused-request-charged", "A request that was turned away is counted like any other.", (at) =>
    at.literal("free").become('"counted"'),
  ),
  inLoop("summary-not-charged", "The cost of a summary is not counted.", (at) =>
    at.literal("counted").become('"free"'),
  ),
  inLoop(
    "denied-call-without-a-result",
    "A call that people have denied has no result, and every provider refuses the next request (dify, letta, pi).",
    (at) => {
      const denied = inline(
        ({ outcome }: Pick<TranscriptResult, "outcome">) => outcome.kind === "failed" && outcome.code === "denied",
        at.name(),
      );
      return at.after(` if (${denied}) return [];`);
    },
  ),
  inLoop(
    "stop-told-as-a-failure",
    "A model reads that a call has failed which was stopped, and tries it again.",
    (at) => at.value().arg(0, 3).become('"It failed."'),
  ),
  inLoop(
    "unknown-told-as-done",
    "A model reads that a call has done its work, although its outcome is unknown.",
    (at, other) => at.become(other("completed").text),
  ),
  inLoop("call-name-used-twice", "Two calls to which a provider has given the same name keep it.", (at) =>
    at.condition().operand(1, 2).drop(),
  ),
  inLoop("two-messages-of-one", "Prompts of people in a row become several user messages in the request.", (at) =>
    at.become(at.whenFalse().text),
  ),
  inLoop("rejection-told-as-an-error", "A request that the provider rejects ends like one that went wrong.", (at) =>
    at.literal("model_rejected").become('"model_error"'),
  ),
  inLoop("turn-listens-for-ever", "A turn that has ended still listens to the stop of its run.", (at) => at.remove()),
  inLoop("door-kept-open", "The time limit for a connection to end properly stays when it has ended.", (at) =>
    at.remove(),
  ),
];

export const MODEL_BUGS: readonly Bug[] = [...STOPS, ...ASKS, ...TELLS];
