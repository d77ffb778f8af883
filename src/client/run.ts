// The handle of a run over the network. It works before the server has responded, and across any number of lost
// connections.
//
// Invariants
// 1. An outcome is reported only if the server has recorded it.
// 2. A cancel called after a prompt covers it, whichever of the two requests arrives first, and covers no other
//    prompt.

import type { ControlError } from "../core/errors.ts";
import type { CancelReceipt, Outcome } from "../core/model/cancel.ts";
import type { Accepted } from "../core/model/command.ts";
import type { Delta, Gap } from "../core/model/delta.ts";
import type { Recorded } from "../core/model/event.ts";
import type { RunId, SessionId } from "../core/model/ids.ts";
import type { RunRow } from "../core/model/rows.ts";
import { type RunResult, resultOf } from "../core/read/run-result.ts";
import { runText, type TextOptions } from "../core/read/run-text.ts";
import type { RunView } from "../core/read/run-view.ts";
import type { AwaitedOutcome, CancelOptions, RunControl } from "../ports/control.ts";
import { follow } from "./follow.ts";
import { checkKey, ignoreUnhandled, invalid, optionsOf, rejectUnknown } from "./input.ts";
import type { AcceptedIn, Unanswered } from "./send-order.ts";
import { cancelPrompt, checkWait, type Stopped, stopOne, withEnd } from "./stop.ts";
import type { Connection } from "./transport/connection.ts";
import { isRefusal } from "./transport/reply.ts";

export interface RunBegun {
  /** Undefined: the prompt creates its own session, whose id comes with the acceptance. */
  readonly sessionId: SessionId | undefined;
  readonly accepted: Promise<AcceptedIn>;
  /** Set for a run that was accepted earlier. */
  readonly known?: AcceptedIn;
  /** The prompt as it was sent. Undefined: the run was accepted earlier. */
  readonly prompt: Unanswered | undefined;
}

export class ClientRun implements RunControl {
  readonly accepted: Promise<Accepted>;
  readonly #connection: Connection;
  readonly #session: SessionId | undefined;
  readonly #prompt: Unanswered | undefined;
  #known: AcceptedIn | undefined;
  #refused = false;
  #outcome: Promise<Outcome> | undefined = undefined;

  constructor(connection: Connection, begun: RunBegun) {
    this.#connection = connection;
    this.#session = begun.sessionId;
    this.#prompt = begun.prompt;
    this.#known = begun.known;
    this.accepted = ignoreUnhandled(
      begun.accepted.then(
        (accepted) => {
          this.#known = accepted;
          const { sessionId: _, ...own } = accepted;
          return own;
        },
        (thrown: unknown) => {
          this.#refused = isRefusal(thrown);
          throw thrown;
        },
      ),
    );
  }

  get id(): RunId {
    if (this.#known !== undefined) return this.#known.runId;
    throw early("The id of a run");
  }

  /** Known at once, except for a prompt that creates its own session: its id comes with the acceptance. */
  get sessionId(): SessionId {
    const id = this.#session ?? this.#known?.sessionId;
    if (id !== undefined) return id;
    throw early("The session of a prompt that creates one");
  }

  /** Polled until it is recorded. Rejects if the prompt was refused, or if the server stays unreachable. */
  get outcome(): Promise<Outcome> {
    this.#outcome ??= ignoreUnhandled(this.accepted.then(({ runId }) => this.#connection.outcomes.of(runId)));
    return this.#outcome;
  }

  async row(): Promise<RunRow> {
    const { id, session, phase, acceptedAt, settledAt, key, content, outcome } = await this.view();
    return { id, session, phase, acceptedAt, settledAt, key, content, outcome };
  }

  cancel(options: CancelOptions = {}): Promise<CancelReceipt & AwaitedOutcome> {
    return ignoreUnhandled(this.#cancel(options));
  }

  /** The text of the last turn, once the run has ended. With `{ all: true }` the text of all turns. */
  text(options: TextOptions = {}): Promise<string> {
    const { all, ...rest } = optionsOf(options, "text()");
    rejectUnknown(rest, "text()");
    return runText(this.#events("without"), { all: all === true });
  }

  /** Waits for the end and resolves with the answer. Throws a RunError unless the run completed. */
  async result(): Promise<RunResult> {
    await this.outcome;
    const view = await this.view();
    return resultOf(view, view.truncated === true ? await this.text() : (view.text ?? ""));
  }

  async view(): Promise<RunView> {
    const { runId } = await this.accepted;
    return this.#connection.get<RunView>(`/v1/runs/${runId}`);
  }

  /** The run's events from acceptance to outcome, with live text deltas. Ends after the outcome. */
  [Symbol.asyncIterator](): AsyncGenerator<Recorded | Delta | Gap, void> {
    return this.#events("with");
  }

  async *#events(deltas: "with" | "without"): AsyncGenerator<Recorded | Delta | Gap, void> {
    const { runId, seq } = await this.accepted;
    const path = `/v1/runs/${runId}/events`;
    for await (const page of follow(this.#connection, {
      path,
      after: seq - 1,
      deltas,
      signal: undefined,
      log: "part",
    })) {
      for (const event of page) {
        const last = event.type === "run.settled" && event.runId === runId;
        if (last) this.#settle(runId, event.outcome);
        yield event;
        if (last) return;
      }
    }
  }

  #settle(runId: RunId, outcome: Outcome): void {
    this.#outcome ??= Promise.resolve(outcome);
    this.#connection.outcomes.settle(runId, outcome);
  }

  async #cancel(options: CancelOptions): Promise<Stopped> {
    const { reason, waitMs, key, ...rest } = optionsOf(options, "cancel() of a run");
    rejectUnknown(rest, "cancel() of a run");
    checkWait(waitMs);
    const once = checkKey(key);
    const connection = this.#connection;
    // The server refused this prompt, so a run with its key is another run.
    if (this.#refused) return { kind: "unknown" };
    // With a caller's own key the request is always the same, so that repeating the cancel repeats the request.
    if (this.#known !== undefined && (once === undefined || this.#prompt === undefined)) {
      const { sessionId, runId } = this.#known;
      const byId = { path: `/v1/runs/${runId}/cancel`, body: { reason }, key: once ?? connection.chance.key() };
      return stopOne(connection, sessionId, { ...byId, waitMs });
    }
    // Named by the key of its prompt, because the prompt may have arrived, be in flight, or have lost its response.
    if (this.#prompt === undefined) return { kind: "unknown" };
    const began = connection.clock.elapsed();
    const receipt = await cancelPrompt(connection, this.#prompt, { reason, key: once, early: true });
    if (receipt.kind !== "stopping" || receipt.runId === undefined) return receipt;
    const wait = { path: `/v1/runs/${receipt.runId}/cancel`, body: { reason }, waitMs, began };
    return withEnd(connection, receipt, wait);
  }
}

function early(what: string): ControlError {
  return invalid(`${what} is not known before the server has accepted it.`, "Await `accepted` of the run first.");
}
