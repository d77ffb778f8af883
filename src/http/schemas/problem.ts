// The schema of all errors.
import { z } from "zod";
import { ADVICE, type ControlCode } from "../../core/errors.ts";

const isCode = (text: string): text is ControlCode => Object.hasOwn(ADVICE, text);

export const CONTROL_CODES: readonly ControlCode[] = Object.keys(ADVICE).filter(isCode);

const error = z.object({
  code: z.enum(CONTROL_CODES),
  message: z.string(),
  hint: z.string(),
  retryable: z.boolean(),
});

export const problem = z.object({ error: error.extend({ requestId: z.string() }) });

/** The error of one of several runs. */
export const runProblem = z.object({ runId: z.string(), error });
