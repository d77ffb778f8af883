// Sends the cancels of `belay run`. Each is retried until it is answered, regardless of the patience of the connection,
// as long as the server runs and this program waits for the run.
import { ControlError, messageOf, STOP_UNRECORDED } from "../../../core/errors.ts";
import type { CancelReceipt } from "../../../core/model/cancel.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { CancelOptions } from "../../../ports/control.ts";
import { formatReceipt } from "../../shared/format/format-outcome.ts";
import type { CancelSent } from "./run-exit.ts";

/** After this long without an answer a message says that the cancel is still being sent. */
const UNANSWERED_MS = 3_000;

/** The pause before a retry, once the connection has given up. */
const RETRY_MS = 1_000;

export interface RunCancelsOptions {
  readonly clock: Clock;
  readonly cancel: (options: CancelOptions) => Promise<CancelReceipt>;
  /** Whether the server runs, busy or not. False: the run is in this program. */
  readonly isThere: () => Promise<boolean>;
  readonly note: (text: string) => void;
  /** Prints even while a question is on the screen. */
  readonly noteNow: (text: string) => void;
}

export class RunCancels {
  readonly #options: RunCancelsOptions;
  readonly #sent: Promise<CancelSent>[] = [];
  #isClosed = false;

  constructor(options: RunCancelsOptions) {
    this.#options = options;
  }

  send(reason: NonNullable<CancelOptions["reason"]>): Promise<CancelSent> {
    const { note } = this.#options;
    const sent = this.#untilAnswered({ reason }).then(
      (receipt): CancelSent => {
        note(`cancel: ${formatReceipt(receipt)}`);
        return "answered";
      },
      (error: unknown): CancelSent => {
        note(`The cancel was not answered: ${messageOf(error)}`);
        return "failed";
      },
    );
    this.#sent.push(sent);
    return sent;
  }

  /** Waits for all cancels. Resolves with whether at least one was answered. */
  async areAnswered(): Promise<boolean> {
    return (await Promise.all(this.#sent)).includes("answered");
  }

  get isEmpty(): boolean {
    return this.#sent.length === 0;
  }

  /** Stops the retries. */
  close(): void {
    this.#isClosed = true;
  }

  async #untilAnswered(options: CancelOptions): Promise<CancelReceipt> {
    const { clock, cancel, isThere, noteNow } = this.#options;
    const cancelTimer = clock.after(UNANSWERED_MS, () =>
      noteNow("The cancel has no answer yet. It is sent again until it has; Ctrl-C again exits."),
    );
    try {
      for (;;) {
        try {
          return await cancel(options);
        } catch (error) {
          if (this.#isClosed || !isUnanswered(error) || !(await isThere())) throw error;
          await new Promise<void>((resolve) => void clock.after(RETRY_MS, resolve));
        }
      }
    } finally {
      cancelTimer();
    }
  }
}

/** Whether the error leaves it unknown if the request was carried out. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof ControlError &&
  (error.code === "disconnected" || (error.code === "unavailable" && error.hint !== STOP_UNRECORDED));
