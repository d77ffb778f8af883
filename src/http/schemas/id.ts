// The schemas of ids and positions. The prefix of an id is its kind.
import { z } from "zod";

const rest = (charsMax: number) => z.string().regex(new RegExp(`^[A-Za-z0-9_.-]{1,${charsMax}}$`));

export const sessionId = z.templateLiteral(["ses_", rest(76)]);
export const runId = z.templateLiteral(["run_", rest(124)]);
export const turnId = z.templateLiteral(["turn_", rest(123)]);
export const callId = z.templateLiteral(["call_", rest(123)]);
export const questionId = z.templateLiteral(["ask_", rest(124)]);
export const processId = z.templateLiteral(["proc_", rest(123)]);

/** A position in the log of one session. */
export const seq = z.int().min(0);
/** Milliseconds of the wall clock. */
export const at = z.number();
/** A non-negative integer. */
export const count = z.int().min(0);
