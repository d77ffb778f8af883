// Realistic examples of the main schemas. A test validates each against its schema.
import type { Json } from "../../core/model/prompt.ts";

const SESSION = "ses_0vq3m8k1c7d2n5t9a4h6";
const RUN = "run_0vq3m8k2f1g8r3x7b5j0";
const REASON: Json = { kind: "user", note: "wrong branch", by: "ann" };

export const EXAMPLES: Readonly<Record<string, Json>> = {
  PromptBody: { prompt: "Run the tests and fix the failures.", delivery: "queue" },
  BeginBody: { prompt: { text: "What changed since Monday?" }, title: "Changes" },
  CreateBody: { title: "Nightly build", cwd: "/srv/shop" },
  CancelBody: { reason: "wrong branch", waitMs: 5000 },
  SessionCancelBody: { reason: REASON, background: "keep" },
  QueueBody: { move: "front" },
  ModeBody: { mode: "read-only" },
  AnswerBody: { kind: "allowed", remember: "session", note: "go ahead" },
  SessionRow: {
    ...{ id: SESSION, head: 12, createdAt: 1_794_700_000_000, updatedAt: 1_794_700_000_000 },
    ...{ title: "Nightly build", cwd: "/srv/shop", phase: "open" },
  },
  RunRow: { id: RUN, session: SESSION, phase: "live", acceptedAt: 2 },
  Accepted: {
    kind: "accepted",
    runId: RUN,
    seq: 2,
    joined: "queue",
    ahead: 0,
    repeated: false,
    sessionId: SESSION,
  },
  CancelReceipt: {
    kind: "stopping",
    since: 9,
    first: true,
    ended: { kind: "settled", outcome: { kind: "cancelled", reason: REASON } },
  },
  SessionReceipt: { kind: "stopping", runs: [{ runId: RUN, receipt: { kind: "stopping", since: 9, first: true } }] },
  RunOutcome: { runId: RUN, outcome: { kind: "completed" } },
  Recorded: { seq: 2, at: 1_794_700_000_120, type: "run.settled", runId: RUN, outcome: { kind: "completed" } },
  Problem: {
    error: {
      code: "not_found",
      message: "There is no such run.",
      hint: "Check the id: nothing is stored under it.",
      retryable: false,
      requestId: "req_4k2",
    },
  },
};
