// Cancels or keeps an editor's runs when it disconnects, within a time limit.

import type { Clock } from "../../../ports/clock.ts";
import type { RunControl } from "../../../ports/control.ts";
import type { AcpConnection } from "../../../protocols/acp/agent/acp-agent.ts";
import type { Log } from "../../../telemetry/log.ts";
import { count } from "../../shared/format/format-outcome.ts";

/** `keep`: the runs continue on the server, or are parked until the next start. */
export type AtEnd = "cancel" | "keep";

/** The time from the end of the input to the exit. Editors kill their agent two seconds after they disconnect. */
export const EXIT_MS_MAX = 1_900;

/** The part of it for stopping and answering the runs. The rest is for parking the runs of other clients. */
const CANCEL_MS_MAX = 1_450;

/** The default grace period of runs. Together with the check that the processes are dead it fits into CANCEL_MS_MAX. */
export const ACP_GRACE_MS = 1_000;

/** The time for answering pending requests other than prompts, which takes milliseconds. */
const ANSWERS_MS_MAX = 300;

/** The least time for closing. */
const CLOSE_MS_MIN = 200;

const GONE = { kind: "policy", note: "The editor is gone." } as const;

export interface DisconnectOptions {
  readonly policy: AtEnd;
  /** What happens to runs that are kept, for the log. */
  readonly kept: string;
  /** Resolves when everything but prompts is answered. */
  readonly answered: () => Promise<void>;
  readonly log: Pick<Log, "info" | "warn">;
  readonly clock: Clock;
}

export class EditorDisconnect {
  readonly #options: DisconnectOptions;
  #since: number | undefined;

  constructor(options: DisconnectOptions) {
    this.#options = options;
  }

  /** The time left for closing. */
  get leftMs(): number {
    const { clock } = this.#options;
    const spent = this.#since === undefined ? 0 : clock.elapsed() - this.#since;
    // Half of the rest is for the last answers, after everything has come to rest.
    return Math.max(CLOSE_MS_MIN, Math.trunc((EXIT_MS_MAX - spent) / 2));
  }

  /** Handles the disconnect: cancels the runs and waits for their answers, or keeps them. */
  async handle(client: Pick<AcpConnection, "runs" | "settled">): Promise<void> {
    const { policy, kept, answered, log, clock } = this.#options;
    this.#since ??= clock.elapsed();
    const runs = [...client.runs];
    const what = policy === "keep" ? kept : "cancelled";
    const left = runs.length === 0 ? "" : `; ${count(runs.length, "run")} of it had not ended: ${what}`;
    log.info(`the editor is gone${left}`);
    const answers = this.#within(ANSWERS_MS_MAX, answered());
    // A kept run must be accepted: its prompt may still be on the way to the host.
    if (policy === "keep") await this.#within(CANCEL_MS_MAX, Promise.allSettled(runs.map((run) => run.accepted)));
    if (policy === "cancel") {
      const ended = cancelAll(runs).then(() => client.settled());
      if ((await this.#within(CANCEL_MS_MAX, ended)) === "late") {
        log.warn("some of it had not stopped in time", { limitMs: CANCEL_MS_MAX });
      }
    }
    await answers;
  }

  async #within(limitMs: number, work: Promise<unknown>): Promise<"done" | "late"> {
    const limit = Promise.withResolvers<"late">();
    const cancelTimer = this.#options.clock.after(limitMs, () => limit.resolve("late"));
    const first = await Promise.race([work.then(() => "done" as const), limit.promise]);
    cancelTimer();
    return first;
  }
}

/** Cancels queued runs before the live one of each session, whose end could otherwise start the next one. */
async function cancelAll(runs: readonly RunControl[]): Promise<void> {
  const first = new Map([...runs].reverse().map((run) => [run.sessionId, run]));
  const cancel = (run: RunControl): Promise<unknown> => run.cancel({ reason: GONE });
  await Promise.allSettled(runs.filter((run) => first.get(run.sessionId) !== run).map(cancel));
  await Promise.allSettled([...first.values()].map(cancel));
}
