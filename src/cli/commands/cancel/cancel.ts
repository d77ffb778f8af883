// `belay cancel ID`: stops a session, run, call, process or question, and prints the receipt.

import { ControlError } from "../../../core/errors.ts";
import { WAIT_MS_MAX } from "../../../core/limits.ts";
import type { CancelReceipt, SessionReceipt } from "../../../core/model/cancel.ts";
import { isSessionId } from "../../../core/model/ids.ts";
import type { AwaitedOutcome, CancelOptions } from "../../../ports/control.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { type Connection, UNTIL_ANSWERED, withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { partsOf, receiptExit, receiptLines } from "../../shared/format/format-receipt.ts";
import { kindOf, resolveId, resolveSession } from "../../shared/id-prefix.ts";
import { offlineStopLines } from "../../shared/offline-stop.ts";
import { spinning } from "../../shared/terminal/spinner.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { wholeNumber } from "../../shared/whole-number.ts";

export interface CancelFlags extends ConnectionOptions {
  readonly reason?: string;
  /** True: the default limit. */
  readonly wait?: string | true;
  /** False: --no-remind. */
  readonly remind?: boolean;
  readonly keepBackground?: true;
  /** The id is that of a call in this session: Belay's id, or the model's. */
  readonly session?: string;
  readonly json?: true;
}

/** Long enough for work that stops by itself, and for work that has to be abandoned. */
export const WAIT_MS = 30_000;

export function runCancel(typed: string, flags: CancelFlags): Promise<number> {
  // Before connecting: a mistyped number is reported at once.
  const waitMs = waitOf(flags.wait);
  return withControl(
    flags,
    async (connection) => {
      const { session } = flags;
      const target = session === undefined ? await resolveId(connection.control, typed) : typed;
      const cancelled =
        session === undefined
          ? cancelOne(connection, target, { flags, waitMs })
          : cancelCallIn(connection, await resolveSession(connection.control, session), target, { flags, waitMs });
      const receipt = await spinning(`stopping ${target}`, cancelled, { clock: systemClock, output: process.stderr });
      if (flags.json) print(JSON.stringify(receipt));
      else {
        const offlineLines = await offlineStopLines(connection, partsOf(target, receipt));
        for (const line of [...receiptLines(target, receipt), ...offlineLines]) print(line);
      }
      return receiptExit(receipt);
    },
    UNTIL_ANSWERED,
  );
}

interface CancelRequest {
  readonly flags: CancelFlags;
  readonly waitMs: number | undefined;
}

function cancelOne(
  { control }: Connection,
  target: string,
  { flags, waitMs }: CancelRequest,
): Promise<SessionReceipt | (CancelReceipt & AwaitedOutcome)> {
  const kind = kindOf(target);
  if (flags.remind === false && kind !== "call") throw onlyFor("--no-remind", "a call", target);
  if (flags.keepBackground && kind !== "session") throw onlyFor("--keep-background", "a session", target);
  const options: CancelOptions = {
    ...(flags.reason === undefined ? {} : { reason: flags.reason }),
    ...(waitMs === undefined ? {} : { waitMs }),
    ...(flags.remind === false ? { remind: false } : {}),
  };
  if (!isSessionId(target)) return control.cancel(target, options);
  return control.session(target).cancel({ ...options, ...(flags.keepBackground ? { background: "keep" } : {}) });
}

function cancelCallIn(
  { control }: Connection,
  session: string,
  call: string,
  { flags, waitMs }: CancelRequest,
): Promise<CancelReceipt & AwaitedOutcome> {
  if (flags.keepBackground) throw onlyFor("--keep-background", "a session", call);
  return control.session(session).cancelCall(call, {
    ...(flags.reason === undefined ? {} : { reason: flags.reason }),
    ...(waitMs === undefined ? {} : { waitMs }),
    ...(flags.remind === false ? { remind: false } : {}),
  });
}

export const waitOf = (given: string | true | undefined): number | undefined =>
  given === true || given === undefined
    ? given && WAIT_MS
    : wholeNumber(given, "--wait", { from: 0, to: WAIT_MS_MAX, unit: "ms" });

const onlyFor = (option: string, what: string, target: string): ControlError =>
  new ControlError("invalid", `${option} is for the cancel of ${what}, and ${target} is not one.`, {
    hint: `Leave it out: belay cancel ${target}`,
  });
