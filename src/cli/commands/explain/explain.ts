// `belay explain ID`: prints why a session is busy, what it waits for, and what a cancel would do.

import type { LiveExplained } from "../../../core/read/explained.ts";
import type { Explanation } from "../../../ports/explanation.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { withControl } from "../../shared/connect.ts";
import { connectionArguments } from "../../shared/connection-arguments.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { ageOf } from "../../shared/format/age.ts";
import { formatReason } from "../../shared/format/format-outcome.ts";
import { plainLine } from "../../shared/format/plain-text.ts";
import { resolveSession } from "../../shared/id-prefix.ts";
import { print } from "../../shared/terminal/terminal.ts";

/** Prompts, titles and questions are cut to this length. */
const BRIEF_CHARS_MAX = 100;

export function runExplain(typed: string, flags: ConnectionOptions & { readonly json?: true }): Promise<number> {
  return withControl(flags, async ({ control }) => {
    const explanation = await control.session(await resolveSession(control, typed)).explain();
    if (flags.json) print(JSON.stringify(explanation));
    else
      for (const line of explained(explanation, { now: systemClock.now(), options: connectionArguments(flags) }))
        print(line);
    return EXIT_OK;
  });
}

interface ExplainContext {
  readonly now: number;
  /** The options with which other commands find the same Belay. */
  readonly options: string;
}

function explained(explanation: Explanation, context: ExplainContext): readonly string[] {
  const { sessionId, summary, live, queue, steers, processes, asOf, driver } = explanation;
  return [
    `${sessionId}  ${brief(summary, 400)}`,
    ...(live === undefined ? [] : liveLines(live, context)),
    ...processes.map(
      ({ id, title, phase, pid, tier, owner }) =>
        `  process   ${id}  ${brief(title)}: ${phase}${pid === undefined ? "" : `, pid ${pid}`}` +
        `${tier === undefined ? "" : `, tier ${tier}`}${owner.startsWith("ses_") ? ", in the background" : ""}`,
    ),
    ...steers.map(({ runId, text }) => `  steer     ${runId}  ${brief(text)}`),
    ...queue.map(({ runId, text }) => `  queued    ${runId}  ${brief(text)}`),
    `As of position ${asOf} of the log; ${driver === undefined ? "no worker here drives it" : `driven by ${driver}`}.`,
  ];
}

function liveLines(live: LiveExplained, { now, options }: ExplainContext): readonly string[] {
  const { runId, phase, reason, attempt, calls, questions, since, blocked } = live;
  const age = since === undefined ? "" : ` for ${ageOf(since, now)}`;
  const again = attempt === 1 ? "" : `, attempt ${attempt}`;
  const why = reason === undefined ? "" : ` (${brief(formatReason(reason))})`;
  return [
    `  run       ${runId}  ${phase}${age}${again}${why}`,
    ...(blocked === undefined
      ? []
      : [`  blocked   ${brief(blocked.work)} held up the event loop for ${blocked.ms} ms`]),
    ...calls.map(({ callId, name, phase: how, waits }) => {
      const state = waits === undefined ? how : `waits for its ${waits}`;
      return `  call      ${callId}  ${brief(name)}: ${state}`;
    }),
    ...questions.map(({ id, about }) =>
      about.kind === "approval"
        ? `  approval  ${id}  of ${brief(about.name)}: belay approve ${id}${options}, or belay deny ${id}${options}`
        : `  question  ${id}  ${brief(about.text)} belay answer${options} ${id} VALUE`,
    ),
  ];
}

const brief = (text: string, charsMax = BRIEF_CHARS_MAX): string => plainLine(text, charsMax);
