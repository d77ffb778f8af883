// Known mistakes of agents that speak this protocol, as changes of the door's source. The probe must find each.
import { type Bug, bug } from "../../sim/bugs/bug.ts";

const ATTACHED = "src/acp/attached-session.ts";
const DESK = "src/acp/desk.ts";
const V1_APP = "src/acp/v1-app.ts";
const V2_APP = "src/acp/v2-app.ts";
const META = "src/acp/request-meta.ts";

/** Some turns of the event loop later. */
const LATER = "new Promise((resolve) => setImmediate(() => setImmediate(resolve)))";

export const MISTAKES: readonly Bug[] = [
  bug(
    "answered-before-the-last-update",
    "A prompt is answered when its run has ended, whether or not that was told.",
    ATTACHED,
    "if (!this.#following) void own.endByOutcome();",
    "void own.endByOutcome();",
  ),
  bug(
    "cancelled-as-an-error",
    "A prompt that was cancelled is answered with an error.",
    V1_APP,
    'case "cancelled":\n      return "cancelled";',
    'case "cancelled":\n      throw runFailed(runId, "cancelled", "The run was cancelled.");',
  ),
  bug(
    "new-status-to-old-clients",
    "A client of the first version is told a status it does not know, and shows the call as going on for ever.",
    "src/acp/v1-update.ts",
    'status: outcome.kind === "completed" ? "completed" : "failed",',
    'status: outcome.kind === "lost" ? "failed" : (outcome.kind as "failed"),',
  ),
  bug(
    "cancel-covers-what-is-behind",
    "A cancel takes effect later than it arrived, and covers the prompt that was sent behind it.",
    V1_APP,
    "await desk.cancel(params.sessionId",
    `await ${LATER}; await desk.cancel(params.sessionId`,
  ),
  bug(
    "cancel-overtakes-the-prompt",
    "A cancel is handled before the prompt that was sent before it, and covers nothing.",
    V1_APP,
    'app.onRequest("session/prompt", ({ params, signal }) => answer(desk, begin(desk, params), signal));',
    `app.onRequest("session/prompt", async ({ params, signal }) =>
      ${LATER}.then(() => answer(desk, begin(desk, params), signal)));`,
  ),
  bug(
    "leaving-cancels",
    "The signal of a request goes off when the connection closes, and that is taken for a cancel.",
    META,
    "if (signal.reason instanceof RequestError && signal.reason.code === -32800) call();",
    "call();",
  ),
  bug(
    "late-cancel-hits-the-next",
    "A cancel that names its run stops whatever runs when it arrives.",
    META,
    'return typeof runId === "string" && runId !== "" ? runId : undefined;',
    "return undefined;",
  ),
  bug(
    "permission-not-withdrawn",
    "What was asked stays on the screen when nobody waits for the answer any more.",
    "src/acp/open-questions.ts",
    "    this.#open.get(id)?.abort(SETTLED);\n",
    "",
  ),
  bug(
    "own-prompt-told",
    "Whoever has sent a prompt is told it, and shows it twice.",
    "src/acp/v1-update.ts",
    'telling.prompt === undefined || (when === "live" && whose === "own")',
    "telling.prompt === undefined",
  ),
  bug(
    "next-run-before-the-answer",
    "The next run is told while the answer of the one before is still being made.",
    ATTACHED,
    "own.end({ runId, outcome, usage });\n    await loopTurn();",
    "void loopTurn().then(loopTurn).then(loopTurn).then(() => own.end({ runId, outcome, usage }));",
  ),
  bug(
    "stopped-call-left-open",
    "A call that was stopped with its run has no last status.",
    "src/acp/narrator.ts",
    'return [{ type: "call-ended", runId, callId, outcome,',
    'return outcome.kind === "cancelled" ? [] : [{ type: "call-ended", runId, callId, outcome,',
  ),
  bug(
    "prompt-behind-a-close",
    "A prompt that was sent behind a close is accepted, and what it began is never told to its end.",
    DESK,
    "      this.#sessions.delete(attached.session.id);\n",
    "",
  ),
  bug(
    "opened-twice-at-once",
    "Two requests that open the same session follow it both, and everything is told twice.",
    DESK,
    "(this.#turns.get(id) ?? Promise.resolve()).then(work)",
    "work()",
  ),
  bug(
    "idle-for-what-never-ran",
    "A prompt that was withdrawn before its turn makes a busy session idle.",
    "src/acp/v2-update.ts",
    'when === "live" && telling.begun',
    'when === "live"',
  ),
  bug(
    "held-prompt-called-inserted",
    "A prompt that was cancelled before its turn is answered as if it had come.",
    V2_APP,
    "throw requestCancelled(begun.runId);",
    "return { messageId: begun.runId };",
  ),
  bug(
    "never-answered-after-letting-go",
    "A prompt of a session that could not be opened is never answered.",
    ATTACHED,
    "if (!this.#isAttached) this.#end();",
    "",
  ),
];
