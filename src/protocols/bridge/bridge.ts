// The bridge: JSON lines between a host process, which started Belay as a child, and a control.
//
// Invariants
// 1. A line is handled in the tick in which it is read. Nothing that waits delays a cancel.
// 2. Every request gets one answer; a notification gets none.
// 3. Backpressure: for a host that does not read, at most HELD_BYTES_MAX and one line are held, and beyond
//    LINES_OPEN_MAX its input is paused.
// 4. The loss of the host is noticed on either pipe, and its runs are ended in bounded time.
import type { Readable, Writable } from "node:stream";
import { ControlError, messageOf, toControlError } from "../../core/errors.ts";
import type { Clock } from "../../ports/clock.ts";
import type { BelayControl } from "../../ports/control.ts";
import { LineSplitter } from "../../wire/line-splitter.ts";
import { type Audit, type AuditRecord, answerWord, targetOf } from "./audit.ts";
import { ANSWER_BYTES_MAX, HANGUP_MS, LINE_BYTES_MAX, LINES_OPEN_MAX, REQUESTS_OPEN_MAX } from "./limits.ts";
import {
  answerLine,
  type Decoded,
  decode,
  errorLine,
  notificationLine,
  type Params,
  type Request,
  rpcError,
  tooLong,
  unknownMethod,
} from "./message.ts";
import type { CloseMode, Method, MethodContext, MethodRequest, Reply } from "./method-context.ts";
import { METHODS } from "./methods.ts";
import { Outlet } from "./outlet.ts";
import { OwnPrompts } from "./own-prompts.ts";
import { rejectUnknown } from "./params.ts";
import { Subscriptions } from "./subscriptions.ts";

export interface BridgeOptions {
  /** Closed by the bridge when it ends. */
  readonly control: BelayControl;
  readonly input: Readable;
  readonly output: Writable;
  readonly clock: Clock;
  readonly audit?: Audit;
  /** Belay's version, for `initialize`. */
  readonly version?: string;
  /**
   * What happens to the host's runs when it disappears. Default `cancel`, because no client is left to read their
   * output.
   */
  readonly onHangup?: CloseMode;
  /** Closes the control. Default: its own `close()`. */
  readonly close?: (mode: CloseMode) => Promise<unknown>;
  /** Reports a problem to the operator, on a channel other than the output. */
  readonly notice?: (text: string) => void;
}

/** Serves the host until it requests `shutdown` or disappears. Resolves after a graceful shutdown. */
export function runBridge(options: BridgeOptions): Promise<void> {
  return new Bridge(options).run();
}

const HUNG_UP = { kind: "policy", note: "The program that started Belay is gone." } as const;

class Bridge {
  readonly #options: BridgeOptions;
  readonly #outlet: Outlet;
  readonly #context: MethodContext & { readonly prompts: OwnPrompts };
  readonly #over = Promise.withResolvers<"shutdown" | "hangup">();
  readonly #idle: (() => void)[] = [];
  readonly #noting = new Set<Promise<void>>();
  readonly #startedAt: number;
  #reading: Promise<unknown> = Promise.resolve();
  #closing: Promise<unknown> | undefined;
  #listening = true;
  /** Lines that are being handled, or whose answers wait for room. */
  #open = 0;
  #lines = 0;

  constructor(options: BridgeOptions) {
    const { control, output, clock, version = "unknown" } = options;
    this.#options = options;
    this.#outlet = new Outlet(output);
    this.#startedAt = clock.now();
    this.#context = {
      control,
      version,
      prompts: new OwnPrompts(),
      subscriptions: new Subscriptions(this.#outlet),
      notify: (method, params) => this.#outlet.answer(() => notificationLine(method, params)),
      shutDown: (mode) => this.#shutDown(mode),
    };
  }

  async run(): Promise<void> {
    const { input, output, clock } = this.#options;
    const splitter = new LineSplitter(LINE_BYTES_MAX, {
      line: (bytes) => this.#handle(decode(bytes)),
      tooLong: () => this.#handle(tooLong(LINE_BYTES_MAX)),
    });
    const hungUp = (): void => this.#over.resolve("hangup");
    const onData = (piece: Buffer | string): void => {
      splitter.push(typeof piece === "string" ? Buffer.from(piece) : piece);
      if (this.#open >= LINES_OPEN_MAX) input.pause();
    };
    input.on("data", onData);
    input.once("end", () => splitter.end());
    for (const ending of ["end", "error", "close"]) input.once(ending, hungUp);
    for (const ending of ["error", "close"]) {
      // Not `once`: a broken pipe may emit several errors, and an unhandled one ends the process.
      output.on(ending, () => {
        this.#outlet.close();
        this.#context.subscriptions.close();
        hungUp();
      });
    }
    const how = await this.#over.promise;
    this.#listening = false;
    input.off("data", onData);
    input.pause();
    const limit = Promise.withResolvers<void>();
    const dispose = clock.after(HANGUP_MS, limit.resolve);
    await Promise.race([this.#end(how), limit.promise]);
    dispose();
    this.#outlet.close();
  }

  #handle(decoded: Decoded): void {
    if (decoded.kind === "nothing") return;
    this.#open += 1;
    const done =
      decoded.kind === "faulty"
        ? this.#outlet.answer(() => errorLine(decoded.id, decoded.error))
        : this.#serve(decoded.request);
    void done.finally(() => this.#served());
  }

  #served(): void {
    this.#open -= 1;
    // Not paused for output that a slow host has not read: it may still send a stop.
    if (this.#listening && this.#open < LINES_OPEN_MAX) this.#options.input.resume();
    if (this.#open === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  /** Handles a request; synchronously up to its first await. Never rejects. */
  async #serve(request: Request): Promise<void> {
    const { id, params } = request;
    const method = METHODS.get(request.method);
    if (method === undefined) {
      if (id !== undefined)
        await this.#outlet.answer(() => errorLine(id, unknownMethod(request.method, METHODS.keys())));
      return;
    }
    const note = this.#recorder(method.sort, request.method, params);
    const methodRequest: MethodRequest = { id, params, record: (answer, target) => note({ answer, target }) };
    try {
      this.#admit(method, request);
      const reply = await method.handle(this.#context, methodRequest);
      if (reply.kind === "now") note({ answer: answerWord(reply.result) });
      await this.#reply(request, reply);
    } catch (error) {
      const { code } = toControlError(error);
      note({ answer: "refused", code });
      if (code === "internal" || id === undefined) this.#notice(`${request.method}: ${errorText(error)}`);
      if (id !== undefined) await this.#outlet.answer(() => errorLine(id, rpcError(error)));
    }
  }

  #admit(method: Method, { method: name, params }: Request): void {
    if (method.sort === "stop") return;
    rejectUnknown(params, method.fields, name);
    if (this.#closing !== undefined) throw new ControlError("shutting_down", "The bridge is shutting down.");
    if (this.#open > REQUESTS_OPEN_MAX) {
      throw new ControlError("overloaded", `${REQUESTS_OPEN_MAX} requests are waiting for their answers already.`, {
        hint: "Wait for some of them, or cancel their runs.",
      });
    }
  }

  async #reply({ id }: Request, reply: Reply): Promise<void> {
    if (reply.kind === "read") {
      if (id === undefined) return;
      // The next answer is read after this one is sent, so at most one large answer is in memory.
      const turn = this.#reading.then(async () => {
        const line = lineOf(id, await reply.read());
        await this.#outlet.answer(() => line);
      });
      this.#reading = turn.catch(() => undefined);
      await turn;
      return;
    }
    if (id !== undefined) {
      const line = lineOf(id, reply.result);
      await this.#outlet.answer(() => line);
    }
    reply.afterwards?.();
  }

  /** Returns a function that records the first answer it is called with, and ignores later ones. */
  #recorder(sort: Method["sort"], action: string, params: Params) {
    this.#lines += 1;
    const { audit, clock } = this.#options;
    const id = `bridge.${this.#startedAt.toString(36)}.${this.#lines}`;
    let noted = sort === "look" || audit === undefined;
    return ({ target, ...answer }: Pick<AuditRecord, "answer" | "code" | "target">): void => {
      if (noted || audit === undefined) return;
      noted = true;
      const about = target ?? targetOf(params);
      const record = { id, at: clock.now(), actor: "bridge", via: "bridge", action, ...answer } as const;
      const noting = this.#note(audit, about === undefined ? record : { ...record, target: about });
      void noting.finally(() => this.#noting.delete(noting));
      this.#noting.add(noting);
    };
  }

  async #note(audit: Audit, record: AuditRecord): Promise<void> {
    try {
      await audit.note(record);
    } catch (error) {
      this.#notice(`The record of ${record.action} could not be kept: ${messageOf(error)}`);
    }
  }

  #shutDown(mode: CloseMode): Promise<unknown> {
    this.#closing ??= this.#close(mode).finally(() => this.#over.resolve("shutdown"));
    return this.#closing;
  }

  async #close(mode: CloseMode): Promise<unknown> {
    const { control, close } = this.#options;
    return close === undefined ? control.close() : close(mode);
  }

  async #end(how: "shutdown" | "hangup"): Promise<void> {
    if (how === "hangup") await this.#hangUp();
    // Open requests are still answered with their outcomes.
    if (this.#open > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
    this.#context.subscriptions.close();
    await this.#outlet.flushed();
    await Promise.all(this.#noting);
  }

  async #hangUp(): Promise<void> {
    const { onHangup = "cancel" } = this.#options;
    const { live } = this.#context.prompts;
    // A shutdown that the host requested continues as requested.
    if (this.#closing === undefined) this.#recorder("stop", "hangup", {})({ answer: onHangup });
    if (this.#closing === undefined && onHangup === "cancel") {
      this.#notice(`The host is gone. Cancelling its runs: ${live.length}.`);
      await Promise.allSettled(live.map((run) => run.cancel({ reason: HUNG_UP })));
    }
    // Runs of other clients are parked, because they are not the host's.
    await this.#shutDown("park").catch((error: unknown) => this.#notice(`Closing failed: ${messageOf(error)}`));
  }

  #notice(text: string): void {
    this.#options.notice?.(text);
  }
}

/** The error with its cause, for the operator. Hosts get only the message. */
function errorText(error: unknown): string {
  const { message, cause } = toControlError(error);
  return cause === undefined ? message : `${message} (${messageOf(cause)})`;
}

function lineOf(id: string | number, result: unknown): string {
  const line = answerLine(id, result);
  const bytes = Buffer.byteLength(line);
  if (bytes <= ANSWER_BYTES_MAX) return line;
  throw new ControlError("invalid", `The answer has ${bytes} bytes; the limit is ${ANSWER_BYTES_MAX}.`, {
    hint: "Read it in pieces: subscribe to the session, with `after`.",
  });
}
