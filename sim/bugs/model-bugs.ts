// Mistakes of the loop over a model: what it asks, when it stops, what it tells, and what that has cost.
import type { Bug } from "./bug.ts";

const AGENT = "src/agent/agent.ts";
const ASK = "src/agent/ask-model.ts";
const REQUEST = "src/agent/model-request.ts";
const RESULT = "src/agent/provider-result.ts";

/** A mistake in one place, looked for where the real loop is. */
function inLoop(name: string, about: string, ...[file, find, replace]: readonly [string, string, string]): Bug {
  return { name, about, edits: [{ file, find, replace }], focus: "model" };
}

/** Who is told to stop, and who goes on. */
const STOPS: readonly Bug[] = [
  inLoop(
    "backoff-not-cut",
    "A stop that comes between two attempts is heard when the pause is over.",
    ASK,
    "await stop.pause(pauseMs(attempt, trouble, retry));",
    "await new Promise<void>((resolve) => void means.turn.clock.after(pauseMs(attempt, trouble, retry), resolve));",
  ),
  {
    name: "asked-again-after-the-stop",
    about: "A stop that comes between two attempts ends the pause, and the model is asked once more.",
    focus: "model",
    edits: [
      {
        file: ASK,
        find: "    stop.throwIfAsked();\n    const answer = new Answer(ask.emit);",
        replace: "    const answer = new Answer(ask.emit);",
      },
      {
        file: ASK,
        find: "await stop.pause(pauseMs(attempt, trouble, retry));",
        replace: "await stop.pause(pauseMs(attempt, trouble, retry)).catch(() => undefined);",
      },
    ],
  },
  inLoop(
    "provider-not-told",
    "A stop ends the turn, and the provider goes on with its answer (Anthropic SDK#867: the connection stays open).",
    REQUEST,
    "    this.#controller.abort(why);\n",
    "",
  ),
  inLoop(
    "late-answer-left-open",
    "An answer that begins after the turn has left is never closed.",
    REQUEST,
    "else stream.cancel(this.#ended.why).catch(ignore);",
    "else return;",
  ),
  inLoop(
    "stop-between-answer-and-reading",
    "A stop in the moment in which the answer begins is not heard, and a deaf provider is read for ever.",
    REQUEST,
    "      if (this.#ended !== undefined) this.#letGo();\n",
    "",
  ),
  inLoop(
    "stream-not-let-go",
    "A stop while an answer comes in waits for the next piece of it.",
    REQUEST,
    "this.#letGo = () => void reader.cancel(this.#ended?.why).catch(ignore);",
    "this.#letGo = ignore;",
  ),
  {
    name: "deaf-tool-begins-after-its-stop",
    about:
      "A tool that cannot stop half-way is begun after it was stopped, because its input was still being looked at.",
    edits: [
      {
        file: "src/agent/tool.ts",
        find: "const checked = isPromise(checking) ? await checking : checking;",
        replace: "const checked = await checking;",
      },
      { file: "src/agent/tool.ts", find: "      requireGoing(call);\n", replace: "" },
    ],
    focus: "model",
  },
  inLoop(
    "transcript-awaited-after-the-stop",
    "A turn that is stopped while the log is read waits for the log.",
    AGENT,
    "const messages = await stop.until(this.#turn.transcript());\n    const { runId, spent }",
    "const messages = await this.#turn.transcript();\n    const { runId, spent }",
  ),
];

/** How often the model is asked, and how long it is waited for. */
const ASKS: readonly Bug[] = [
  inLoop(
    "answered-in-part-asked-again",
    "A request whose answer broke off is made again, and people read two beginnings.",
    ASK,
    "if (answer.said || !trouble.transient ||",
    "if (!trouble.transient ||",
  ),
  inLoop(
    "refused-for-good-asked-again",
    "A request that the provider does not take is made again and again.",
    ASK,
    "|| !trouble.transient || attempt",
    "|| attempt",
  ),
  inLoop(
    "attempts-without-end",
    "A provider that is down is asked for ever.",
    ASK,
    "attempt >= retry.attemptsMax)",
    "attempt >= 10 * retry.attemptsMax)",
  ),
  inLoop(
    "no-pause-between-attempts",
    "A provider that is busy is asked again at once.",
    ASK,
    "await stop.pause(pauseMs(attempt, trouble, retry));",
    "await stop.pause(0);",
  ),
  inLoop(
    "retry-after-ignored",
    "A provider says when it wants to be asked again, and is asked before that.",
    ASK,
    "Math.min(lastMs, afterMs ?? firstMs * 2 ** (attempt - 1))",
    "Math.min(lastMs, Math.min(afterMs ?? firstMs, firstMs))",
  ),
  inLoop(
    "silence-not-noticed",
    "A provider that has begun to answer and falls silent is waited for without end (Codex: 300 s of silence).",
    REQUEST,
    "if (leftMs > 0) return this.#arm(leftMs);",
    "if (leftMs > 0) return;",
  ),
  inLoop(
    "silence-from-the-beginning",
    "A long answer is cut off, because its signs of life do not count.",
    REQUEST,
    "      this.#heardAt = this.#clock.elapsed();\n      answer.note(value);",
    "      answer.note(value);",
  ),
  {
    name: "silence-by-the-wall",
    about: "How long a provider is silent is read off the wall clock.",
    focus: "model",
    edits: [
      {
        file: REQUEST,
        find: "this.#heardAt = this.#clock.elapsed();\n    this.#arm",
        replace: "this.#heardAt = this.#clock.now();\n    this.#arm",
      },
      {
        file: REQUEST,
        find: "this.#heardAt = this.#clock.elapsed();\n      answer",
        replace: "this.#heardAt = this.#clock.now();\n      answer",
      },
      { file: REQUEST, find: "limitMs - this.#clock.elapsed();", replace: "limitMs - this.#clock.now();" },
    ],
  },
  inLoop(
    "one-turn-too-many",
    "A run whose turns are used up gets one more.",
    AGENT,
    "if (spent.turns >= turns)",
    "if (spent.turns > turns)",
  ),
  inLoop(
    "answers-cost-nothing",
    "What a model has said does not count against the budget.",
    AGENT,
    "spent.inputTokens + spent.outputTokens >= tokens",
    "spent.inputTokens >= tokens",
  ),
];

/** What the model, the log and the bill are told. */
const TELLS: readonly Bug[] = [
  inLoop(
    "cost-lost-with-the-stop",
    "A turn that is stopped or fails has cost nothing.",
    AGENT,
    "    turn.meter(() => this.#means.meter.read());\n",
    "",
  ),
  inLoop(
    "cost-of-an-attempt-forgotten",
    "What an attempt has cost that came to nothing is forgotten with it.",
    ASK,
    '      if (request.begun || trouble.code === "model_timeout") meter.end("counted");\n',
    "",
  ),
  inLoop(
    "refused-request-charged",
    "A request that was turned away is counted like any other.",
    ASK,
    'meter.end("free");',
    'meter.end("counted");',
  ),
  inLoop(
    "summary-not-charged",
    "What a summary has cost is not counted.",
    "src/agent/compaction.ts",
    'means.meter.end("counted");',
    'means.meter.end("free");',
  ),
  inLoop(
    "denied-call-without-a-result",
    "A call that people have denied has no result, and every provider refuses the next request (dify, letta, pi).",
    "src/agent/provider-prompt.ts",
    "    const { toolCallId, toolName } = part;\n",
    '    if (result.outcome.kind === "failed" && result.outcome.code === "denied") return [];\n    const { toolCallId, toolName } = part;\n',
  ),
  inLoop(
    "stop-told-as-a-failure",
    "A model is told that a call has failed which was stopped, and tries it again.",
    RESULT,
    "return errorText(stopped(outcome), known(changes)",
    'return errorText("It failed.", known(changes)',
  ),
  inLoop(
    "unknown-told-as-done",
    "A model is told that a call has done its work, which nobody knows.",
    RESULT,
    "return errorText(LOST, known(changes), partial(result));",
    "return completed(result);",
  ),
  inLoop(
    "call-name-used-twice",
    "Two calls to which a provider has given the same name keep it.",
    "src/agent/wire-id.ts",
    "while (!PLAIN.test(id) || this.#used.has(id)) {",
    "while (!PLAIN.test(id)) {",
  ),
  inLoop(
    "two-messages-of-one",
    "What people say in a row is told as several messages of theirs.",
    "src/agent/provider-prompt.ts",
    'if (last?.role === "user") last.content.push(...all);\n    else this.#out.push',
    "this.#out.push",
  ),
  inLoop(
    "rejection-told-as-an-error",
    "A request that the provider does not take ends like one that went wrong.",
    "src/agent/trouble.ts",
    'code: rejected ? "model_rejected" : "model_error"',
    'code: rejected ? "model_error" : "model_error"',
  ),
  inLoop(
    "turn-listens-for-ever",
    "A turn that has ended still listens to the stop of its run.",
    AGENT,
    "      loop.close();\n",
    "",
  ),
  inLoop(
    "door-kept-open",
    "The limit for a connection to end properly stays when it has ended.",
    REQUEST,
    "  } finally {\n    takeBack();\n  }\n}",
    "  } finally {\n    if (reader.closed === undefined) takeBack();\n  }\n}",
  ),
];

export const MODEL_BUGS: readonly Bug[] = [...STOPS, ...ASKS, ...TELLS];
