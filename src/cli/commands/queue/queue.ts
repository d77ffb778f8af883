// `belay queue SESSION`: lists the queue of a session, or makes one change to it.

import { ControlError } from "../../../core/errors.ts";
import type { QueuePlace, QueueReceipt } from "../../../core/model/command.ts";
import { isRunId, type RunId } from "../../../core/model/ids.ts";
import type { BelayControl, QueuedRun, SessionControl } from "../../../ports/control.ts";
import { UNTIL_ANSWERED, withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { formatQueueReceipt, queueExit, receiptExit, receiptLines } from "../../shared/format/format-receipt.ts";
import { plainLine } from "../../shared/format/plain-text.ts";
import { styleOf, table } from "../../shared/format/table.ts";
import { resolveId, resolveSession } from "../../shared/id-prefix.ts";
import { print } from "../../shared/terminal/terminal.ts";

export interface QueueFlags extends ConnectionOptions {
  readonly edit?: string;
  readonly move?: string;
  readonly withdraw?: string;
  readonly clear?: true;
  readonly steer?: string;
  readonly reason?: string;
  readonly json?: true;
}

type Change = "edit" | "move" | "withdraw" | "steer";

/** `value` is the new text or the new place of the run. */
export function runQueue(typed: string, value: string | undefined, flags: QueueFlags): Promise<number> {
  const change = changeOf(flags);
  checkValue(change?.kind, value, typed);
  const patience = change?.kind === "withdraw" || flags.clear ? UNTIL_ANSWERED : {};
  return withControl(
    flags,
    async ({ control }) => {
      const session = control.session(await resolveSession(control, typed));
      if (flags.clear) return clearQueue(session, flags);
      if (change !== undefined) return changeQueue(control, session, { ...change, value: value ?? "" }, flags);
      const queue = await session.queue.list();
      if (flags.json) print(JSON.stringify({ queue }));
      else if (queue.length === 0) print("Nothing waits.");
      else for (const line of lines(queue)) print(line);
      return EXIT_OK;
    },
    patience,
  );
}

function changeOf(flags: QueueFlags): { readonly kind: Change; readonly run: string } | undefined {
  const changes = (["edit", "move", "withdraw", "steer"] as const).flatMap((kind) => {
    const run = flags[kind];
    return run === undefined ? [] : [{ kind, run }];
  });
  const given = [...changes.map(({ kind }) => `--${kind}`), ...(flags.clear ? ["--clear"] : [])];
  if (given.length < 2) return changes[0];
  throw usage("One change at a time.", `Leave out all but one of ${given.join(", ")}.`);
}

async function clearQueue({ id, queue }: SessionControl, { reason, json }: QueueFlags): Promise<number> {
  const receipt = await queue.clear(reason === undefined ? {} : { reason });
  if (json) print(JSON.stringify(receipt));
  else for (const line of receiptLines(id, receipt)) print(line);
  return receiptExit(receipt);
}

function checkValue(kind: Change | undefined, value: string | undefined, session: string): void {
  const takes = kind === "edit" || kind === "move";
  if (takes === (value !== undefined)) return;
  if (kind === "edit")
    throw usage("--edit needs the new text.", `Try: belay queue ${session} --edit RUN "another text"`);
  if (kind === "move") throw usage("--move needs a place.", `Try: belay queue ${session} --move RUN front`);
  throw usage(`queue takes no "${plainLine(value ?? "", 40)}" here.`, `Try: belay queue ${session}`);
}

interface QueueChange {
  readonly kind: Change;
  readonly run: string;
  readonly value: string;
}

async function changeQueue(
  control: BelayControl,
  session: SessionControl,
  options: QueueChange,
  flags: QueueFlags,
): Promise<number> {
  const run = await runIdOf(control, options.run);
  if (run === undefined) {
    const value = { edit: ' "another text"', move: " front", withdraw: "", steer: "" }[options.kind];
    const what = `No waiting run has the id "${plainLine(options.run, 40)}".`;
    throw usage(what, `The run comes first, as in: belay queue SESSION --${options.kind} RUN${value}`);
  }
  const receipt = await applyChange(control, session, { ...options, run }, flags.reason);
  if (flags.json) print(JSON.stringify(receipt));
  else print(`${run}  ${formatQueueReceipt(receipt)}`);
  return queueExit(receipt);
}

async function applyChange(
  control: BelayControl,
  { queue }: SessionControl,
  { kind, run, value }: QueueChange,
  reason: string | undefined,
): Promise<QueueReceipt> {
  switch (kind) {
    case "edit":
      return queue.edit(run, value);
    case "move":
      return queue.move(run, await placeOf(control, value));
    case "withdraw":
      return queue.withdraw(run, reason === undefined ? {} : { reason });
    case "steer":
      return queue.steer(run);
  }
}

async function placeOf(control: BelayControl, typed: string): Promise<QueuePlace> {
  if (typed === "front" || typed === "back") return typed;
  const before = await runIdOf(control, typed);
  if (before !== undefined) return { before };
  throw usage(`There is no place "${plainLine(typed, 40)}".`, "A place is front, back, or the run to stand before.");
}

/** The id of the run. One that does not wait here is passed on: the server reports its state. */
async function runIdOf(control: BelayControl, typed: string): Promise<RunId | undefined> {
  try {
    const id = await resolveId(control, typed, ["run"]);
    return isRunId(id) ? id : undefined;
  } catch (error) {
    if (error instanceof ControlError && error.code === "not_found") return undefined;
    throw error;
  }
}

const COLUMNS = [{ title: "NEXT" }, { title: "ID" }, { title: "JOINED" }, { title: "PROMPT", widthMin: 10 }] as const;

const lines = (queue: readonly QueuedRun[]): readonly string[] =>
  table(
    COLUMNS,
    queue.map(({ runId, joined, prompt }, at) => [String(at + 1), runId, joined, prompt.text]),
    styleOf(process.stdout),
  );

const usage = (message: string, hint: string): ControlError => new ControlError("invalid", message, { hint });
