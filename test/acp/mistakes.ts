// Known mistakes of ACP agents, as edits of the source. The probe must find each.
import type { PromptResponse } from "@agentclientprotocol/sdk/experimental/v2";
import type { Outcome } from "../../src/core/model/cancel.ts";
import type { RunId } from "../../src/core/model/ids.ts";
import { type Mistake, mistake } from "../mistakes/mistake.ts";
import { inline } from "../mistakes/place.ts";

/** Resolves some turns of the event loop later. */
const LATER = "new Promise((resolve) => setImmediate(() => setImmediate(resolve)))";

const ANSWERS: readonly Mistake[] = [
  mistake(
    "answered-before-the-last-update",
    "A prompt is answered when its run has ended, whether or not the client has received the last update.",
    (at) => at.become(at.whenTrue().text),
  ),
  mistake("cancelled-as-an-error", "A prompt that was cancelled is answered with an error.", (at, other) => {
    const failure = other("error").value();
    return at.become(
      `throw ${failure.callee().text}(${failure.arg(0, 3).text}, "cancelled", "The run was cancelled.");`,
    );
  }),
  mistake(
    "new-status-to-old-clients",
    "A client of the first version receives a status it does not know, and shows the call as running without end.",
    (at) => {
      const kind = at.value().condition().left().text;
      return at.value().become(`${kind} === "lost" ? "failed" : ${kind}`);
    },
  ),
];

const CANCELS: readonly Mistake[] = [
  mistake(
    "cancel-covers-what-is-behind",
    "A cancel takes effect later than it arrived, and covers the prompt that was sent behind it.",
    (at) => at.before(`await ${LATER}; `),
  ),
  mistake(
    "cancel-overtakes-the-prompt",
    "A cancel is handled before the prompt that was sent before it, and covers nothing.",
    (at) => {
      const answer = at.value().arg(1, 2).body();
      return answer.become(`${LATER}.then(() => ${answer.text})`);
    },
  ),
  mistake(
    "leaving-cancels",
    "The signal of a request is aborted when the connection closes, and that is taken for a cancel.",
    (at) => at.become(at.whenTrue().text),
  ),
  mistake("late-cancel-hits-the-next", "A cancel that names its run stops whatever runs when it arrives.", (at) =>
    at.value().become("undefined"),
  ),
];

const UPDATES: readonly Mistake[] = [
  mistake(
    "permission-not-withdrawn",
    "A question stays on the screen of the client when no call waits for its answer any more.",
    (at) => at.remove(),
  ),
  mistake("own-prompt-told", "The client that has sent a prompt receives it as an update, and shows it twice.", (at) =>
    at.condition().operand(1, 2).drop(),
  ),
  mistake(
    "next-run-before-the-answer",
    "The client receives the next run while the answer of the one before is still being made.",
    {
      end: (at) => at.remove(),
      turn: (at, other) => {
        const wait = at.value().value();
        const again = `.then(${wait.callee().text})`;
        return at.become(`void ${wait.text}${again}${again}.then(() => ${other("end").value().text});`);
      },
    },
  ),
  mistake("stopped-call-left-open", "A call that was stopped with its run has no last status.", (at) => {
    const isStopped = inline((outcome: Outcome) => outcome.kind === "cancelled", at.param(0, 2));
    return at.value().before(`${isStopped} ? [] : `);
  }),
];

const SESSIONS: readonly Mistake[] = [
  mistake(
    "prompt-behind-a-close",
    "A prompt that was sent behind a close is accepted, and the client never receives the end of its run.",
    (at) => at.remove(),
  ),
  mistake(
    "opened-twice-at-once",
    "Two requests that open the same session follow it both, and the client receives every update twice.",
    (at) => at.value().become(`${at.value().arg(0, 1).text}()`),
  ),
  mistake("idle-for-what-never-ran", "A prompt that was withdrawn before its turn makes a busy session idle.", (at) =>
    at.condition().operand(1, 2).drop(),
  ),
  mistake(
    "held-prompt-called-inserted",
    "A prompt that was cancelled before its turn is answered as if its turn had come.",
    (at) => {
      const answer = inline((runId: RunId): PromptResponse => ({ messageId: runId }), at.value().arg(0, 1));
      return at.become(`return ${answer};`);
    },
  ),
  mistake(
    "never-answered-after-letting-go",
    "A prompt of a session that could not be opened is never answered.",
    (at) => at.remove(),
  ),
];

export const MISTAKES: readonly Mistake[] = [...ANSWERS, ...CANCELS, ...UPDATES, ...SESSIONS];
