// `belay stop-all`: stops all running and queued work, in every session.

import type { CancelAllOptions, CoveredSession } from "../../../ports/control.ts";
import type { Explanation } from "../../../ports/explanation.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { type Connection, UNTIL_ANSWERED, withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_FOUND, EXIT_OK } from "../../shared/exit-code.ts";
import { count } from "../../shared/format/format-outcome.ts";
import { partsOf, receiptLines } from "../../shared/format/format-receipt.ts";
import { offlineStopLines } from "../../shared/offline-stop.ts";
import { confirm, isAttended } from "../../shared/terminal/confirm.ts";
import { spinning } from "../../shared/terminal/spinner.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { waitOf } from "../cancel/cancel.ts";

export interface StopAllFlags extends ConnectionOptions {
  readonly reason?: string;
  readonly wait?: string | true;
  readonly keepBackground?: true;
  readonly yes?: true;
  readonly json?: true;
}

/** Asks for confirmation only at a terminal: from a script a stop must just work. */
export function runStopAll(flags: StopAllFlags): Promise<number> {
  const waitMs = waitOf(flags.wait);
  const options: CancelAllOptions = {
    ...(flags.reason === undefined ? {} : { reason: flags.reason }),
    ...(waitMs === undefined ? {} : { waitMs }),
    ...(flags.keepBackground ? { background: "keep" } : {}),
  };
  return withControl(
    flags,
    async (connection) => {
      if (!flags.yes && isAttended() && !(await isConfirmed(connection))) return EXIT_FOUND;
      const cancelled = connection.control.cancelAll(options);
      const covered = await spinning("stopping everything", cancelled, { clock: systemClock, output: process.stderr });
      if (flags.json) print(JSON.stringify({ sessions: covered }));
      else {
        const parts = covered.flatMap(({ sessionId, receipt }) => partsOf(sessionId, receipt));
        for (const line of [...report(covered), ...(await offlineStopLines(connection, parts))]) print(line);
      }
      return EXIT_OK;
    },
    UNTIL_ANSWERED,
  );
}

async function isConfirmed({ control, where }: Connection): Promise<boolean> {
  const live = await control.live();
  // Without live work no confirmation is needed. The cancel is still sent, since work may start at this moment.
  if (live.length === 0) return true;
  if ((await confirm(`Stop ${summary(live)} at ${where}?`)) === "yes") return true;
  process.stderr.write("Nothing was stopped.\n");
  return false;
}

function summary(live: readonly Explanation[]): string {
  const runs = live.reduce((sum, one) => sum + (one.live === undefined ? 0 : 1) + one.queue.length, 0);
  const processes = live.reduce((sum, one) => sum + one.processes.length, 0);
  const parts = [count(runs, "run"), ...(processes === 0 ? [] : [count(processes, "process", "processes")])];
  return `${parts.join(" and ")} in ${count(live.length, "session")}`;
}

function report(covered: readonly CoveredSession[]): readonly string[] {
  if (covered.length === 0) return ["Nothing was going on, so nothing was changed."];
  return covered.flatMap(({ sessionId, receipt }) => receiptLines(sessionId, receipt));
}
