// The cancels that `belay run` sends. Each is sent again until it is answered, whatever the patience of the connection
// is: for as long as the server is there, and the run is waited for.
import { ControlError, messageOf, STOP_UNRECORDED } from "../../../core/errors.ts";
import type { CancelReceipt } from "../../../core/model/cancel.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { CancelOptions } from "../../../ports/control.ts";
import { sayReceipt } from "../../shared/format/format-outcome.ts";
import type { CancelSent } from "./exit-message.ts";

/** After this long without an answer a message says that the cancel is still being sent. */
const UNANSWERED_MS = 3_000;

/** The pause before a cancel that the connection has given up is sent again. */
const AGAIN_MS = 1_000;

export interface RunCancelsOptions {
  readonly clock: Clock;
  readonly cancel: (options: CancelOptions) => Promise<CancelReceipt>;
  /** Whether a server is there, busy or not. False: the run is in this very program. */
  readonly isThere: () => Promise<boolean>;
  readonly note: (text: string) => void;
  /** Also while a question is on the screen. */
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
        note(`cancel: ${sayReceipt(receipt)}`);
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

  /** Whether one was sent and is answered, now or later. */
  async areAnswered(): Promise<boolean> {
    return (await Promise.all(this.#sent)).includes("answered");
  }

  get isEmpty(): boolean {
    return this.#sent.length === 0;
  }

  /** Nothing is sent again. */
  close(): void {
    this.#isClosed = true;
  }

  async #untilAnswered(options: CancelOptions): Promise<CancelReceipt> {
    const { clock, cancel, isThere, noteNow } = this.#options;
    const dispose = clock.after(UNANSWERED_MS, () =>
      noteNow("The cancel has no answer yet. It is sent until it has; Ctrl-C again leaves."),
    );
    try {
      for (;;) {
        try {
          return await cancel(options);
        } catch (error) {
          if (this.#isClosed || !isUnanswered(error) || !(await isThere())) throw error;
          await new Promise<void>((resolve) => void clock.after(AGAIN_MS, resolve));
        }
      }
    } finally {
      dispose();
    }
  }
}

/** Neither carried out nor refused, as far as is known. */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof ControlError &&
  (error.code === "disconnected" || (error.code === "unavailable" && error.hint !== STOP_UNRECORDED));
