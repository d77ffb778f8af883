// Reports about processes for the model: what happened, how it ended, its output, and what to do next.
import { type CancelReason, type Outcome, who } from "../../../core/model/cancel.ts";
import type { Feedback } from "../../../core/model/event.ts";
import type { ProcessId } from "../../../core/model/ids.ts";
import type { OutputFile, OutputPage, ProcessInfo, ProcessResult } from "../../../ports/spawner.ts";
import { PROCESSES_LISTED_MAX } from "../../limits.ts";

/** Reports how the process ended, with its output. `output` is an `outputReport`. */
export function endReport(result: ProcessResult, output: string): string {
  return [`${ending(result)}${duration(result.durationMs)}.`, ...left(result), output].join("\n");
}

function ending({ processId, outcome, exit }: ProcessResult): string {
  const how = exit?.signal === undefined ? undefined : `ended by ${exit.signal}`;
  switch (outcome.kind) {
    case "completed":
      return how === undefined
        ? `Ended with exit code ${exit?.code ?? "unknown"}`
        : `Ended by ${exit?.signal} (not sent by Belay)`;
    case "cancelled":
      return `STOPPED by ${stopper(outcome.reason)}. It did not finish${how === undefined ? "" : `: ${how}`}`;
    case "failed":
      return `It could not be started: ${outcome.message}`;
    case "lost":
      return `LOST: the server crashed while ${processId} was running. It is gone, and how far it got is not known`;
  }
}

const stopper = (reason: CancelReason): string =>
  reason.kind === "timeout" ? `its time limit of ${time(reason.limitMs)}` : who(reason);

const duration = (ms: number | undefined): string => (ms === undefined ? "" : ` after ${time(ms)}`);

/** Names processes that could not be ended: a model that believes them gone would start them a second time. */
function left({ escaped }: ProcessResult): readonly string[] {
  if (escaped === undefined || escaped.length === 0) return [];
  return [`${escaped.length} of its processes survived every signal and may still be running: ${escaped.join(", ")}.`];
}

/** Reports that the process was moved to the background, and what comes next. */
export function movedReport(id: ProcessId, waitedMs: number, to: FeedbackOptions, output: string): string {
  const moved = `It is still running after ${time(waitedMs)}, and continues in the background as ${id}.`;
  return `${moved}\n${next(to)}\n${output}`;
}

export function startReport(
  { id, pid, tier }: Pick<ProcessInfo, "id" | "pid" | "tier">,
  to: FeedbackOptions,
  output: string,
) {
  const where = pid === undefined ? "" : ` (pid ${pid}, held by tier ${tier ?? "unknown"})`;
  return `${id} runs in the background${where}.\n${next(to)}\n${output}`;
}

export interface FeedbackOptions {
  readonly feedback: Feedback;
  readonly timeoutMs?: number | undefined;
}

/** Says how the model will learn about the end of the process. */
function next({ feedback, timeoutMs }: FeedbackOptions): string {
  const notified = feedback === "silent" ? "" : ", and you are notified of that too";
  const limit = timeoutMs === undefined ? "" : ` It is stopped ${time(timeoutMs)} after its start${notified}.`;
  return `${NEXT[feedback]}${limit} Meanwhile: read_output, wait_process, stop_process.`;
}

const NEXT: Readonly<Record<Feedback, string>> = {
  wake: "You are notified when it ends by itself, even if there is no prompt until then: there is no need to wait.",
  "next-turn": "You are notified of its end with the next prompt.",
  silent: "You are not notified when it ends.",
};

export function waitReport(id: ProcessId, waitedMs: number, output: string): string {
  return `${id} is still running after another ${time(waitedMs)}.\n${output}`;
}

export function stopReport(result: ProcessResult | undefined, id: ProcessId, waitedMs: number, output: string): string {
  if (result === undefined) {
    const state = `${id} is being stopped, and has not ended within ${time(waitedMs)}. Ask again with wait_process.`;
    return `${state}\n${output}`;
  }
  const { outcome } = result;
  const what = outcome.kind === "completed" ? " It had ended by itself before it could be stopped:" : "";
  const gone = isGone(outcome) && result.escaped === undefined ? "Nothing of it is left.\n" : "";
  return `${id}:${what} ${gone}${endReport(result, output)}`;
}

const isGone = ({ kind }: Outcome): boolean => kind === "cancelled" || kind === "completed";

/** The beginning and the end of its output, at most `bytesMax`, and how to read the rest. */
export async function outputReport(output: OutputFile | undefined, id: ProcessId, bytesMax: number): Promise<string> {
  if (output === undefined) return "Nothing is kept of its output.";
  const total = output.counts.bytes.all;
  if (total === 0) return "It has written nothing.";
  if (total <= bytesMax) {
    const { text } = await output.read({ bytesMax, plain: true });
    return `Output, ${bytes(total)}:\n${text}`;
  }
  const half = Math.floor(bytesMax / 2);
  const first = await output.read({ bytesMax: half, plain: true });
  const last = await output.read({ offset: total - half, bytesMax: half, plain: true });
  const offset = JSON.stringify({ processId: id, offset: first.to });
  const hole = `… ${bytes(last.from - first.to)} left out; read them with read_output ${offset} …`;
  return `Output, the first and the last of ${bytes(total)}:\n${first.text}\n${hole}\n${last.text}`;
}

/** Reports one page of output, and where it stands in the whole. */
export function pageReport(id: ProcessId, page: OutputPage, output: OutputFile, isLive: boolean): string {
  const total = output.counts.bytes[page.stream];
  const of = page.stream === "all" ? "stdout and stderr together" : page.stream;
  const state = isLive ? `${id} is running.` : `${id} has ended.`;
  const lost = page.missing === 0 ? "" : ` ${bytes(page.missing)} before them are not kept.`;
  const head =
    page.to === page.from
      ? `There is nothing from byte ${page.from} on: ${bytes(total)} so far, ${of}.`
      : `Bytes ${page.from} to ${page.to} of ${total}, ${of}.`;
  return `${head}${lost} ${more(page, total, isLive)} ${state}${page.text === "" ? "" : `\n${page.text}`}`;
}

function more({ to, end }: OutputPage, total: number, isLive: boolean): string {
  if (to < total) return `The next begin at offset ${to}.`;
  return end || !isLive ? "That was the last." : `More may come, from offset ${to} on.`;
}

/** Lists the running processes, for a model that named an unknown one. */
export function listReport(live: readonly ProcessInfo[]): string {
  if (live.length === 0) return "No process is running in this session.";
  const some = live.slice(0, PROCESSES_LISTED_MAX).map(({ id, title }) => `- ${id}: ${title}`);
  const rest = live.length - some.length;
  return ["Running in this session:", ...some, ...(rest > 0 ? [`- and ${rest} more`] : [])].join("\n");
}

const bytes = (count: number): string => `${count.toLocaleString("en-US")} ${count === 1 ? "byte" : "bytes"}`;

export function time(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Number((ms / 1_000).toFixed(1))} s`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.round((ms - minutes * 60_000) / 1_000);
  return seconds === 0 ? `${minutes} min` : `${minutes} min ${seconds} s`;
}
