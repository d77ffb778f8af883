// A session over the network: prompts in, events out, and its queue.

import { ControlError } from "../core/errors.ts";
import { CALL_WAIT_MS } from "../core/limits.ts";
import type { SessionReceipt } from "../core/model/cancel.ts";
import type { InboxReceipt, ModeReceipt, QueuePlace, QueueReceipt } from "../core/model/command.ts";
import type { Delta, Gap } from "../core/model/delta.ts";
import type { Recorded } from "../core/model/event.ts";
import type { Seq, SessionId } from "../core/model/ids.ts";
import type { InboxItem } from "../core/model/inbox.ts";
import type { Prompt } from "../core/model/prompt.ts";
import type { Question } from "../core/model/question.ts";
import type { RunRow } from "../core/model/rows.ts";
import type { SessionDeleted, Trimmed } from "../core/model/upkeep.ts";
import type { CallView } from "../core/read/call-view.ts";
import type { Message } from "../core/read/transcript.ts";
import type {
  CancelOptions,
  EventsOptions,
  Keyed,
  ModeOptions,
  PromptCancelOptions,
  PromptOptions,
  QueueClearOptions,
  QueueControl,
  QueuedRun,
  SessionCancelOptions,
  SessionControl,
} from "../ports/control.ts";
import type { Explanation } from "../ports/explanation.ts";
import type { SessionRow } from "../ports/store.ts";
import { follow, type Page } from "./follow.ts";
import {
  callPart,
  checkJson,
  checkKey,
  checkPrompt,
  checkRun,
  ignoreUnhandled,
  ignoreUnhandledOf,
  invalid,
  optionsOf,
  rejectUnknown,
} from "./input.ts";
import { openRun } from "./open-run.ts";
import { SessionProcesses } from "./process.ts";
import { ClientRun } from "./run.ts";
import type { AcceptedIn } from "./send-order.ts";
import { cancelPrompt, checkWait, type KeyReceipt, type Stopped, stopOne, waitForSession } from "./stop.ts";
import type { Connection } from "./transport/connection.ts";

export class ClientSession implements SessionControl {
  readonly id: SessionId;
  readonly queue: ClientQueue;
  readonly processes: SessionProcesses;
  readonly #connection: Connection;
  readonly #path: string;

  static {
    ignoreUnhandledOf(ClientSession, ["cancelCall", "cancelPrompt", "close"]);
  }

  constructor(connection: Connection, id: SessionId) {
    this.id = id;
    this.#connection = connection;
    this.#path = `/v1/sessions/${id}`;
    this.queue = new ClientQueue(connection, this);
    this.processes = new SessionProcesses(connection, id);
  }

  row(): Promise<SessionRow> {
    return this.#connection.get(this.#path);
  }

  /** Sent in the same tick, or right after the previous prompt of this session. A cancel called later covers it. */
  prompt(prompt: string | Prompt, options: PromptOptions = {}): ClientRun {
    const { delivery, key: given, actor: _, ...rest } = optionsOf(options, "prompt()");
    rejectUnknown(rest, "prompt()");
    const body = { prompt: checkPrompt(prompt), ...(delivery === undefined ? {} : { delivery }) };
    const key = checkKey(given) ?? this.#connection.chance.key();
    const accepted = this.#connection.order.prompt({ sessionId: this.id, key }, () =>
      this.#connection.value<AcceptedIn>({ method: "POST", path: `${this.#path}/runs`, body, key }),
    );
    return new ClientRun(this.#connection, { sessionId: this.id, accepted, prompt: { sessionId: this.id, key } });
  }

  cancel(options: SessionCancelOptions = {}): Promise<SessionReceipt> {
    return ignoreUnhandled(this.#cancel(options));
  }

  async #cancel(options: SessionCancelOptions): Promise<SessionReceipt> {
    const { reason, waitMs, key: given, prompts = [], actor: _, ...more } = optionsOf(options, "cancel()");
    const { background, only, ...rest } = more;
    rejectUnknown(rest, "cancel()");
    checkWait(waitMs);
    const began = this.#connection.clock.elapsed();
    let request = { path: `${this.#path}/cancel`, body: {}, key: this.#once(given) };
    // The cancel is recorded first and waited for afterwards, so that the next prompt need not wait for the end.
    const receipt = await this.#connection.stopAll<SessionReceipt>(this.id, (named) => {
      const keys = [...prompts, ...named.map((one) => one.key)];
      request = { ...request, body: { reason, background, only, ...(keys.length === 0 ? {} : { prompts: keys }) } };
      return request;
    });
    if (waitMs === undefined || receipt.kind !== "stopping") return receipt;
    return waitForSession(this.#connection, { ...request, waitMs, began });
  }

  async call(id: string): Promise<CallView> {
    return this.#connection.get<CallView>(`${this.#path}/calls/${callPart(id)}`);
  }

  async cancelCall(id: string, options: CancelOptions = {}): Promise<Stopped> {
    const { reason, waitMs = CALL_WAIT_MS, remind, key, ...rest } = optionsOf(options, "cancelCall()");
    rejectUnknown(rest, "cancelCall()");
    const path = `${this.#path}/calls/${callPart(id)}/cancel`;
    return stopOne(this.#connection, this.id, { path, body: { reason, remind }, key: this.#once(key), waitMs });
  }

  async cancelPrompt(prompt: string, options: PromptCancelOptions = {}): Promise<KeyReceipt> {
    const { reason, key, early, actor: _, ...rest } = optionsOf(options, "cancelPrompt()");
    rejectUnknown(rest, "cancelPrompt()");
    const named = checkKey(prompt);
    if (named === undefined) throw invalid("cancelPrompt() takes the key of a prompt.");
    return cancelPrompt(this.#connection, { sessionId: this.id, key: named }, { reason, key, early });
  }

  async close(options: Pick<CancelOptions, "reason" | "key"> = {}): Promise<SessionReceipt> {
    const { reason, key: given, ...rest } = optionsOf(options, "close()");
    rejectUnknown(rest, "close()");
    const body = reason === undefined ? {} : { body: { reason } };
    return this.#connection.stop(this.id, { method: "DELETE", path: this.#path, key: this.#once(given), ...body });
  }

  async *events(options: EventsOptions = {}): AsyncGenerator<Recorded | Delta | Gap, void> {
    for await (const page of this.pages(options)) {
      for (const event of page) {
        if (options.signal?.aborted === true) return;
        yield event;
      }
    }
  }

  async *pages(options: EventsOptions = {}): AsyncGenerator<Page, void> {
    const { after = 0, deltas = "without", signal, ...rest } = optionsOf(options, "events()");
    rejectUnknown(rest, "events()");
    if (!Number.isSafeInteger(after) || after < 0) {
      throw invalid("`after` is a position in the log: a whole number from 0.");
    }
    yield* follow(this.#connection, { path: `${this.#path}/events`, after, deltas, signal, log: "whole" });
  }

  async transcript(): Promise<readonly Message[]> {
    return (await this.#connection.get<{ messages: readonly Message[] }>(`${this.#path}/transcript`)).messages;
  }

  async questions(): Promise<readonly Question[]> {
    return (await this.#connection.get<{ questions: readonly Question[] }>(`${this.#path}/questions`)).questions;
  }

  async post(item: InboxItem, options: Keyed = {}): Promise<InboxReceipt> {
    const { key, ...rest } = optionsOf(options, "post()");
    rejectUnknown(rest, "post()");
    checkJson(item, "An item of the inbox");
    return this.#connection.value({ method: "POST", path: `${this.#path}/inbox`, body: item, key: this.#once(key) });
  }

  /** The server checks whether the mode exists. */
  async setMode(mode: string, options: ModeOptions = {}): Promise<ModeReceipt> {
    const { by, key, ...rest } = optionsOf(options, "setMode()");
    rejectUnknown(rest, "setMode()");
    if (typeof mode !== "string") throw invalid("A mode must be a string.");
    const body = { mode, ...(by === undefined ? {} : { by }) };
    return this.#connection.value({ method: "PUT", path: `${this.#path}/mode`, body, key: this.#once(key) });
  }

  explain(): Promise<Explanation> {
    return this.#connection.get(`${this.#path}/explain`);
  }

  trim(before: Seq): Promise<Trimmed> {
    const path = `${this.#path}/trim`;
    return this.#connection.value({ method: "POST", path, body: { before }, key: this.#once(undefined) });
  }

  delete(options: Pick<CancelOptions, "reason"> = {}): Promise<SessionDeleted> {
    const { reason, ...rest } = optionsOf(options, "delete()");
    rejectUnknown(rest, "delete()");
    const body = reason === undefined ? {} : { reason };
    return this.#connection.stop(this.id, { path: `${this.#path}/delete`, body, key: this.#once(undefined) });
  }

  async findRun(key: string): Promise<ClientRun> {
    const named = checkKey(key);
    if (named === undefined) throw invalid("findRun() takes the key of a prompt.");
    const path = `${this.#path}/prompts/${encodeURIComponent(named)}`;
    return openRun(this.#connection, await this.#connection.get<RunRow>(path));
  }

  async runs(page: { readonly before?: Seq; readonly limit?: number } = {}): Promise<readonly RunRow[]> {
    const { before, limit, ...rest } = optionsOf(page, "runs()");
    rejectUnknown(rest, "runs()");
    const query = { before, limit };
    return (await this.#connection.get<{ runs: readonly RunRow[] }>(`${this.#path}/runs`, query)).runs;
  }

  #once(key: string | undefined): string {
    return checkKey(key) ?? this.#connection.chance.key();
  }
}

/** The runs that have not started. */
export class ClientQueue implements QueueControl {
  readonly #connection: Connection;
  readonly #session: Pick<ClientSession, "id" | "cancel">;
  readonly #path: string;

  static {
    ignoreUnhandledOf(ClientQueue, ["withdraw", "clear"]);
  }

  constructor(connection: Connection, session: Pick<ClientSession, "id" | "cancel">) {
    this.#connection = connection;
    this.#session = session;
    this.#path = `/v1/sessions/${session.id}/queue`;
  }

  async list(): Promise<readonly QueuedRun[]> {
    return (await this.#connection.get<{ queue: readonly QueuedRun[] }>(this.#path)).queue;
  }

  async edit(run: string, prompt: string | Prompt, options: Keyed = {}): Promise<QueueReceipt> {
    const keyed = optionsOf(options, "edit()");
    return this.#change(run, { prompt: checkPrompt(prompt) }, keyed);
  }

  async move(run: string, to: QueuePlace, options: Keyed = {}): Promise<QueueReceipt> {
    return this.#change(run, { move: to }, optionsOf(options, "move()"));
  }

  async withdraw(run: string, options: Pick<CancelOptions, "reason" | "key"> = {}): Promise<QueueReceipt> {
    const { reason, ...keyed } = optionsOf(options, "withdraw()");
    const body = reason === undefined ? {} : { body: { reason } };
    const ask = { method: "DELETE", ...this.#named(run, keyed), ...body } as const;
    return unwrapped(await this.#connection.stop<QueueReceipt>(this.#session.id, ask));
  }

  async clear(options: QueueClearOptions = {}): Promise<SessionReceipt> {
    const { reason: _, key: __, prompts: ___, actor: ____, ...rest } = optionsOf(options, "clear()");
    rejectUnknown(rest, "clear()");
    return this.#session.cancel({ ...options, only: "queue" });
  }

  async steer(run: string, options: Keyed = {}): Promise<QueueReceipt> {
    return this.#change(run, { steer: true }, optionsOf(options, "steer()"));
  }

  async #change(run: string, body: object, keyed: Keyed): Promise<QueueReceipt> {
    return unwrapped(await this.#connection.value({ method: "PATCH", body, ...this.#named(run, keyed) }));
  }

  #named(run: string, { key, ...rest }: Keyed): { readonly path: string; readonly key: string } {
    rejectUnknown(rest, "A change of the queue");
    return { path: `${this.#path}/${checkRun(run)}`, key: checkKey(key) ?? this.#connection.chance.key() };
  }
}

function unwrapped(receipt: QueueReceipt): QueueReceipt {
  if (receipt.kind === "refused") throw new ControlError(receipt.code, receipt.message);
  return receipt;
}
