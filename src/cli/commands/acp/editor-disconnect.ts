// What becomes of an editor's runs when it has gone, and how long that may take.

import type { Clock } from "../../../ports/clock.ts";
import type { RunControl } from "../../../ports/control.ts";
import type { AcpConnection } from "../../../protocols/acp/agent/acp-agent.ts";
import type { Log } from "../../../telemetry/log.ts";
import { count } from "../../shared/format/format-outcome.ts";

/** `keep`: they go on, where the work is done or from the next start on. */
export type AtEnd = "cancel" | "keep";

/** From the end of the input to the end of this program. Editors kill what is there two seconds later. */
export const EXIT_MS_MAX = 1_900;

/** Of that, until its runs have stopped and are answered. The rest is for setting down what is somebody else's. */
const CANCEL_MS_MAX = 1_450;

/**
 * How long work here may take to stop, unless the configuration says otherwise: with the time in which the death of a
 * tree is verified it fits into the above.
 */
export const ACP_GRACE_MS = 1_000;

/** What was asked last is answered within milliseconds, prompts excepted. */
const ANSWERS_MS_MAX = 300;

/** At the least, for closing; however long the runs have taken. */
const CLOSE_MS_MIN = 200;

const GONE = { kind: "policy", note: "The editor is gone." } as const;

export interface DisconnectOptions {
  readonly policy: AtEnd;
  /** What is true of runs that are kept, for people. */
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

  /** What is left for closing. */
  get leftMs(): number {
    const { clock } = this.#options;
    const spent = this.#since === undefined ? 0 : clock.elapsed() - this.#since;
    // A part of what is left is for the last answers, after everything has come to rest.
    return Math.max(CLOSE_MS_MIN, Math.trunc((EXIT_MS_MAX - spent) / 2));
  }

  /** The editor is gone: its runs are ended, and their prompts answered if somebody reads. Or they are left alone. */
  async come(client: Pick<AcpConnection, "runs" | "settled">): Promise<void> {
    const { policy, kept, answered, log, clock } = this.#options;
    this.#since ??= clock.elapsed();
    const runs = [...client.runs];
    const what = policy === "keep" ? kept : "cancelled";
    const left = runs.length === 0 ? "" : `; ${count(runs.length, "run")} of it had not ended: ${what}`;
    log.info(`the editor is gone${left}`);
    const answers = this.#within(ANSWERS_MS_MAX, answered());
    // Those that are kept must be somewhere: a prompt may still be on its way to where the work is done.
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
    const dispose = this.#options.clock.after(limitMs, () => limit.resolve("late"));
    const first = await Promise.race([work.then(() => "done" as const), limit.promise]);
    dispose();
    return first;
  }
}

/** What waits before what it waits for: else the end of one begins the next, whose cancel is still on its way. */
async function cancelAll(runs: readonly RunControl[]): Promise<void> {
  const first = new Map([...runs].reverse().map((run) => [run.sessionId, run]));
  const cancel = (run: RunControl): Promise<unknown> => run.cancel({ reason: GONE });
  await Promise.allSettled(runs.filter((run) => first.get(run.sessionId) !== run).map(cancel));
  await Promise.allSettled([...first.values()].map(cancel));
}
