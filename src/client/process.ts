// The processes of a session over the network: find, follow, write to and stop them.

import { ControlError } from "../core/errors.ts";
import type { CancelReceipt, GivenReason } from "../core/model/cancel.ts";
import { isProcessId, type ProcessId, type Seq, type SessionId } from "../core/model/ids.ts";
import type { ProcessRow } from "../core/model/rows.ts";
import type { ProcessControl, ProcessesControl } from "../ports/control.ts";
import type { OutputPage, OutputPageOptions, ProcessInfo, ProcessResult } from "../ports/spawner.ts";
import { ignoreUnhandled, ignoreUnhandledOf, invalid, optionsOf, rejectUnknown } from "./input.ts";
import { INPUT_BYTES_MAX, WAIT_PIECE_MS } from "./limits.ts";
import { stopOne } from "./stop.ts";
import type { Connection } from "./transport/connection.ts";
import { Stream } from "./transport/stream.ts";

/** A process as the server describes it. */
interface ProcessFound {
  readonly id: ProcessId;
  readonly sessionId: SessionId;
  readonly info?: ProcessInfo;
}

export class SessionProcesses implements ProcessesControl {
  readonly #connection: Connection;
  readonly #session: SessionId;

  constructor(connection: Connection, session: SessionId) {
    this.#connection = connection;
    this.#session = session;
  }

  async get(id: string): Promise<ClientProcess> {
    if (typeof id !== "string" || !isProcessId(id)) throw invalid('A process id begins with "proc_".');
    const found = await this.#connection.get<ProcessFound>(`/v1/processes/${id}`);
    if (found.sessionId === this.#session) return new ClientProcess(this.#connection, found);
    throw new ControlError("not_found", `There is no process ${id} in ${this.#session}.`);
  }

  async list(): Promise<readonly ProcessInfo[]> {
    const path = `/v1/sessions/${this.#session}/processes`;
    return (await this.#connection.get<{ processes: readonly ProcessInfo[] }>(path)).processes;
  }

  async history(page: { readonly before?: Seq; readonly limit?: number } = {}): Promise<readonly ProcessRow[]> {
    const { before, limit, ...rest } = optionsOf(page, "history()");
    rejectUnknown(rest, "history()");
    const path = `/v1/sessions/${this.#session}/processes/history`;
    return (await this.#connection.get<{ processes: readonly ProcessRow[] }>(path, { before, limit })).processes;
  }
}

export class ClientProcess implements ProcessControl {
  static {
    ignoreUnhandledOf(ClientProcess, ["cancel"]);
  }

  readonly id: ProcessId;
  readonly sessionId: SessionId;
  readonly info: ProcessInfo | undefined;
  readonly #connection: Connection;
  readonly #path: string;
  /** Writes are sent one after another: each waits for the one before it. */
  #written: Promise<unknown> = Promise.resolve();

  constructor(connection: Connection, found: ProcessFound) {
    this.#connection = connection;
    this.id = found.id;
    this.sessionId = found.sessionId;
    this.info = found.info;
    this.#path = `/v1/processes/${found.id}`;
  }

  wait(options: { readonly limitMs?: number; readonly signal?: AbortSignal } = {}): Promise<ProcessResult | undefined> {
    return ignoreUnhandled(this.#wait(options));
  }

  /** Resolves when the cancel is recorded, and does not wait for the end of the process; `wait()` does. */
  async cancel(reason: GivenReason = { kind: "user" }): Promise<CancelReceipt> {
    if (typeof reason !== "string" && reason?.kind !== "user" && reason?.kind !== "policy") {
      throw invalid('A cancel\'s `reason` is a note, or has the `kind` "user" or "policy"; others are Belay\'s own.');
    }
    const key = this.#connection.chance.key();
    const request = { path: `${this.#path}/cancel`, body: { reason }, key, waitMs: 0 };
    const { ended: _, ...receipt } = await stopOne(this.#connection, this.sessionId, request);
    return receipt;
  }

  /**
   * A chunk whose response was lost is not sent again, because the process may have received it. Chunks written after
   * a failed one are refused, so that the input has no hole.
   */
  write(data: string | Uint8Array): Promise<void> {
    return this.#behind(async () => {
      for (const body of inPieces(data)) await this.#input(body);
    });
  }

  endInput(): Promise<void> {
    return this.#behind(() => this.#input({ end: true }));
  }

  async resize(size: { readonly columns: number; readonly rows: number }): Promise<void> {
    await this.#connection.value({ method: "POST", path: `${this.#path}/resize`, body: size });
  }

  async read(options: OutputPageOptions = {}): Promise<OutputPage | undefined> {
    const { stream, offset, bytesMax, plain } = optionsOf(options, "read()");
    try {
      return await this.#connection.get<OutputPage>(`${this.#path}/output`, { stream, offset, bytesMax, plain });
    } catch (thrown) {
      if (thrown instanceof ControlError && thrown.code === "not_found") return undefined;
      throw thrown;
    }
  }

  async *follow(options: OutputPageOptions & { readonly signal?: AbortSignal } = {}): AsyncGenerator<OutputPage, void> {
    const { stream, offset, plain, signal } = optionsOf(options, "follow()");
    const path = `${this.#path}/output/follow`;
    const source = new Stream(this.#connection, { path, query: { stream, offset, plain }, signal, kind: "ends" });
    let readTo = offset ?? 0;
    try {
      for await (const messages of source.pages()) {
        for (const { event, data } of messages) {
          if (event !== "page") continue;
          // The edge: the API defines what a page is.
          const page = JSON.parse(data) as OutputPage;
          if (page.to < readTo) continue;
          readTo = page.to;
          source.cursor = String(page.to);
          yield page;
          if (page.end) return;
        }
      }
    } catch (thrown) {
      // The server keeps no output of this process.
      if (!(thrown instanceof ControlError) || thrown.code !== "not_found") throw thrown;
    }
  }

  async #wait(options: { readonly limitMs?: number; readonly signal?: AbortSignal }) {
    const { limitMs = Number.POSITIVE_INFINITY, signal, ...rest } = optionsOf(options, "wait()");
    rejectUnknown(rest, "wait()");
    const whole = limitMs === Number.POSITIVE_INFINITY || (Number.isInteger(limitMs) && limitMs >= 0);
    if (!whole) throw invalid("`limitMs` must be a whole number of milliseconds from 0.");
    const { clock } = this.#connection;
    const began = clock.elapsed();
    for (;;) {
      const leftMs = Math.max(0, Math.ceil(limitMs - (clock.elapsed() - began)));
      const waitMs = Math.min(leftMs, WAIT_PIECE_MS);
      const { status, value } = await this.#connection.ask<ProcessResult>({
        method: "GET",
        path: `${this.#path}/result`,
        query: { waitMs },
        waitMs,
        signal,
        attempts: "patient",
      });
      if (status === 200) return value;
      if (leftMs <= waitMs && limitMs !== Number.POSITIVE_INFINITY) return undefined;
    }
  }

  async #input(body: object): Promise<void> {
    await this.#connection.value({ method: "POST", path: `${this.#path}/input`, body, again: "never" });
  }

  #behind(act: () => Promise<void>): Promise<void> {
    const done = this.#written.then(act, (cause: unknown) => {
      throw new ControlError("conflict", "Not sent: the input before it was not delivered.", { cause });
    });
    this.#written = done;
    // Once everything behind a failed chunk was refused, the caller may write again.
    done.catch(() => {
      if (this.#written === done) this.#written = Promise.resolve();
    });
    return ignoreUnhandled(done);
  }
}

/** Chunks that fit into a request. Text is never split inside a character. */
function* inPieces(data: string | Uint8Array): Generator<{ readonly data: string } | { readonly base64: string }> {
  let from = 0;
  while (from < data.length) {
    let to = Math.min(from + INPUT_BYTES_MAX, data.length);
    if (typeof data === "string") {
      const unit = data.charCodeAt(to - 1);
      if (to < data.length && unit >= 0xd800 && unit < 0xdc00) to -= 1;
      yield { data: data.slice(from, to) };
    } else yield { base64: base64(data.subarray(from, to)) };
    from = to;
  }
}

function base64(bytes: Uint8Array): string {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}
