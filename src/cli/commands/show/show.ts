// `belay show ID`: prints one run or one call from the log. The answer of a run is last, unchanged.

import { ControlError } from "../../../core/errors.ts";
import { isCallId, isRunId } from "../../../core/model/ids.ts";
import type { CallView } from "../../../core/read/call-view.ts";
import type { ModelUsage, Moment, RunCall, RunView } from "../../../core/read/run-view.ts";
import { withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { dayAndTime } from "../../shared/format/age.ts";
import { count, formatOutcome, formatReason } from "../../shared/format/format-outcome.ts";
import { plainLine, plainText } from "../../shared/format/plain-text.ts";
import { resolveId, resolveSession } from "../../shared/id-prefix.ts";
import { print } from "../../shared/terminal/terminal.ts";

/** Prompts, inputs and results are cut to this length. `--json` prints them whole. */
const BRIEF_CHARS_MAX = 400;

export interface ShowFlags extends ConnectionOptions {
  /** The id is that of a call in this session: Belay's id, or the model's. */
  readonly session?: string;
  readonly json?: true;
}

export function show(typed: string, flags: ShowFlags): Promise<number> {
  return withControl(flags, async ({ control }) => {
    const { session } = flags;
    const id = session === undefined ? await resolveId(control, typed, ["run", "call"]) : typed;
    if (session !== undefined || isCallId(id)) {
      const within = session === undefined ? control : control.session(await resolveSession(control, session));
      const call = await within.call(id);
      if (flags.json) print(JSON.stringify(call));
      else for (const line of callLines(call)) print(line);
    } else if (isRunId(id)) {
      const view = await (await control.run(id)).view();
      if (flags.json) print(JSON.stringify(view));
      else for (const line of runLines(view)) print(line);
    } else {
      throw new ControlError("invalid", "`belay show` takes the id of a run or a call.");
    }
    return EXIT_OK;
  });
}

function runLines(view: RunView): readonly string[] {
  const { id, session, key, prompt, accepted, started, settled, usage, calls, callsOmitted, text, truncated } = view;
  const state = view.outcome === undefined ? stateOf(view) : formatOutcome(view.outcome);
  return [
    `${id}  ${brief(state)}`,
    field("session", session),
    ...(key === undefined ? [] : [field("key", key)]),
    ...(prompt === undefined ? [] : [field("prompt", prompt.text)]),
    ...moments({ accepted, started, settled }),
    ...usage.map((one) => field("model", usageLine(one))),
    ...(callsOmitted === 0 ? [] : [field("calls", `${count(callsOmitted, "earlier call")} not listed`)]),
    ...calls.map((call) => field("call", callLine(call))),
    ...(view.incomplete === true ? [field("note", "its events were removed by a trim or by retention")] : []),
    ...(text === undefined || text === "" ? [] : ["", shown(text)]),
    ...(truncated === true ? ["… the answer is longer: `belay logs --json` has all of it"] : []),
  ];
}

function callLines(call: CallView): readonly string[] {
  const { id, session, run, tool, phase, waits, providerCallId, reason, outcome, input, result, changes } = call;
  const state =
    outcome === undefined ? `${phase}${waits === undefined ? "" : ` for its ${waits}`}` : formatOutcome(outcome);
  return [
    `${id}  ${brief(tool)}: ${brief(state)}`,
    field("session", session),
    field("run", run),
    ...(providerCallId === undefined ? [] : [field("model id", providerCallId)]),
    ...moments({ requested: call.requested, since: call.since, settled: call.settled }),
    ...(reason === undefined || outcome !== undefined ? [] : [field("reason", formatReason(reason))]),
    field("input", JSON.stringify(input)),
    ...(result === undefined ? [] : [field("result", typeof result === "string" ? result : JSON.stringify(result))]),
    ...(changes === undefined ? [] : [field("changed", changes.join(", "))]),
  ];
}

const stateOf = ({ phase, reason }: RunView): string =>
  reason === undefined ? phase : `stopping (${formatReason(reason)})`;

const moments = (given: Readonly<Record<string, Moment | undefined>>): readonly string[] =>
  Object.entries(given).flatMap(([name, moment]) =>
    moment === undefined ? [] : [field(name, `${dayAndTime(moment.at)}  (position ${moment.seq})`)],
  );

const usageLine = ({ model, turns, inputTokens, outputTokens, estimated }: ModelUsage): string =>
  `${model === undefined ? "not named" : `${model.provider} ${model.id}`}: ${count(turns, "turn")}, ` +
  `${inputTokens} tokens in, ${outputTokens} out${estimated ? " (estimated)" : ""}`;

const callLine = ({ callId, tool, outcome }: RunCall): string =>
  `${callId} ${tool}: ${outcome.kind === "running" ? "running" : formatOutcome(outcome)}`;

const field = (name: string, value: string): string => `  ${name.padEnd(10)}${brief(value)}`;
const brief = (text: string): string => plainLine(text, BRIEF_CHARS_MAX);
/** Sanitised for a terminal; a file or a pipe gets every character. */
const shown = (text: string): string => (process.stdout.isTTY === true ? plainText(text) : text);
