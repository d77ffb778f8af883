// A foreign agent that is running: its process, and the connection over its pipes. One for each session.
//
// Invariants
// 1. `ended` resolves when its whole tree is gone and that is recorded. The connection is closed by then.
// 2. A connection that is closed while the process lives is of no use to anybody: the process is ended.
// 3. What it tells is handed to the one who listens, in its order, before the answer that follows it; else to nobody.
import { type ClientConnection, client, RequestError, type RequestPermissionResponse } from "@agentclientprotocol/sdk";
import type { GivenReason } from "../../../core/model/cancel.ts";
import type { ProcessId } from "../../../core/model/ids.ts";
import type { Turn } from "../../../ports/agent.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { ProcessHandle, ProcessResult, ProcessTree, TreeMember } from "../../../ports/spawner.ts";
import { AgentError, type FailureCode } from "./agent-errors.ts";
import { type Capabilities, readCapabilities } from "./capabilities.ts";
import { exitReport } from "./exit-report.ts";
import type { Leave, Settled } from "./external-agent-options.ts";
import { brief } from "./kept-json.ts";
import { OUTPUT_KEPT_BYTES_MAX, PARTING_MS, PROBE_MS, TIDY_SHARE, WORDS_CHARS_MAX } from "./limits.ts";
import { MessageStream } from "./message-stream.ts";
import { readSessionUpdate, type Update } from "./update.ts";

/** Who hears what the agent tells, and is asked what it asks. */
export interface Listener {
  readonly sessionId: string;
  told(update: Update): void;
  /** `signal` aborts when the agent takes the question back, or is gone. */
  permission(params: unknown, signal: AbortSignal): Promise<RequestPermissionResponse>;
}

interface LinkParts extends Pick<Settled, "name" | "leave"> {
  readonly stopMs: number | undefined;
  readonly clock: Clock;
  readonly child: ProcessHandle;
  readonly wire: MessageStream;
}

export class AgentProcess {
  readonly name: string;
  readonly leave: Leave;
  readonly clock: Clock;
  /** Undefined: nobody knows how, the session is not ours any more. */
  readonly ended: Promise<ProcessResult | undefined>;
  listener: Listener | undefined = undefined;
  /** Receives what Belay does not record. */
  onUpdate: (raw: unknown) => void = ignore;
  abilities: Capabilities = readCapabilities({});
  /** The agent's own name of the session, once it has one. */
  sessionId: string | undefined = undefined;
  /** What it answered when its session was opened: its modes, models and options, if it has any. */
  menus: unknown = undefined;
  /** `ending`: its process is being ended, and nothing new is sent to it. */
  phase: "open" | "ending" | "over" = "open";
  /** How long it may take to answer a cancel. Default a share of the turn's grace. */
  readonly stopMs: number | undefined;
  /** The processes below it before its first prompt: its own servers. Undefined: they could not be listed. */
  baseline: readonly TreeMember[] | undefined = undefined;
  /** What earlier runs have left running, if anything. */
  leftRunning: ProcessHandle | undefined = undefined;
  /** Whether it still answers, after processes that it had started were ended. Undefined: nothing of it was. */
  answers: Promise<boolean> | undefined = undefined;
  /** What the model is to hear with the next prompt, and no person has said. */
  readonly untold: string[] = [];
  readonly #child: ProcessHandle;
  readonly #wire: MessageStream;
  readonly #connection: ClientConnection;

  constructor({ name, leave, stopMs, clock, child, wire }: LinkParts) {
    this.name = name;
    this.stopMs = stopMs;
    this.leave = leave;
    this.clock = clock;
    this.#child = child;
    this.#wire = wire;
    this.#connection = client({ name: "belay" })
      .onRequest("session/request_permission", asItCame, ({ params, signal }) => this.#permission(params, signal))
      .connect(wire.stream);
    this.ended = this.#watch();
  }

  /** What it tells while it works. */
  told(params: unknown): void {
    const { sessionId, update } = readSessionUpdate(params);
    if (this.listener?.sessionId === sessionId) this.listener.told(update);
    // Settings and commands change between prompts, too.
    else if (update.kind === "other" && (this.sessionId ?? sessionId) === sessionId) this.onUpdate(update.raw);
  }

  /** Whether it can be asked anything. */
  get isOpen(): boolean {
    return this.phase === "open" && !this.#connection.signal.aborted;
  }

  get processId(): ProcessId {
    return this.#child.id;
  }

  get tree(): ProcessTree | undefined {
    return this.#child.tree;
  }

  /** Sends a request that no agent knows: one that works refuses it. */
  probe(): void {
    const limit = Promise.withResolvers<boolean>();
    const cancelLimit = this.clock.after(PROBE_MS, () => limit.resolve(false), "idle");
    const answer = this.request("_belay/ping", {}).then(
      () => true,
      (error: unknown) => error instanceof RequestError,
    );
    this.answers = Promise.race([answer, limit.promise]).finally(cancelLimit);
  }

  request<T>(method: string, params: object, cancellationSignal?: AbortSignal): Promise<T> {
    const options = cancellationSignal === undefined ? {} : { cancellationSignal };
    return this.#connection.agent.request<T>(method, params, options);
  }

  /** Nobody waits for it; an agent that is gone need not be told. */
  notify(method: string, params: object): void {
    this.#connection.agent.notify(method, params).catch(ignore);
  }

  /** Ends its whole tree. Resolves when that is done. */
  async stop(reason: GivenReason): Promise<ProcessResult | undefined> {
    if (this.phase === "open") this.phase = "ending";
    // Refused only by a store in trouble, which keeps the cancel, or because it has ended.
    this.#child.cancel(reason).catch(ignore);
    return this.ended;
  }

  /** Lets it end by itself, and sees to it. */
  async part(reason: GivenReason): Promise<void> {
    try {
      this.#child.endInput();
    } catch {
      // It has ended.
    }
    const limit = Promise.withResolvers<void>();
    const dispose = this.clock.after(PARTING_MS, () => limit.resolve(), "idle");
    await Promise.race([this.ended, limit.promise]);
    dispose();
    if (this.phase !== "over") await this.stop(reason);
  }

  /** How it failed, in words, with its own last ones. Only for one that is no use any more. */
  async failed(code: FailureCode, what: string, result?: ProcessResult): Promise<AgentError> {
    const words = await exitReport(this.#child, result);
    const { strange, trouble } = this.#wire;
    const cut = trouble === undefined ? "" : ` It was ended here: ${trouble}.`;
    const garbage = strange === undefined ? "" : ` On stdout it said something that is no message: ${strange}`;
    return new AgentError(code, `${this.name} ${what}.${cut}${words}${garbage}`);
  }

  async #permission(params: unknown, signal: AbortSignal): Promise<RequestPermissionResponse> {
    const { listener } = this;
    return listener === undefined ? { outcome: { outcome: "cancelled" } } : listener.permission(params, signal);
  }

  async #watch(): Promise<ProcessResult | undefined> {
    void this.#connection.closed.then(() => {
      if (this.phase === "open") void this.stop({ kind: "policy", note: "Its connection is broken." });
    });
    const result = await this.#child.wait().catch(() => undefined);
    this.phase = "over";
    this.#wire.end();
    await this.#connection.closed;
    return result;
  }
}

/** What an agent itself said went wrong. Undefined: it was not the agent that said it. */
export const wordsOf = (error: unknown): string | undefined =>
  error instanceof RequestError ? brief(error.message, WORDS_CHARS_MAX) : undefined;

export const isLoginWanted = (error: unknown): boolean => error instanceof RequestError && error.code === LOGIN_WANTED;

const LOGIN_WANTED = -32_000;

/** Starts the program. Rejects with what the spawner says, and then there is nothing of it. */
export async function startAgentProcess(turn: Turn, options: Settled, cwd: string): Promise<AgentProcess> {
  const { command, env, inherit = "all", name, leave, stopMs } = options;
  const started = Promise.withResolvers<ProcessHandle>();
  let link: AgentProcess | undefined;
  const wire = new MessageStream({
    write: async (line) => (await started.promise).write(line),
    // Before it was asked anything it has nothing to tell.
    told: (params) => link?.told(params),
  });
  const child = await turn.processes.start(command, {
    ...{ cwd, env, inherit, profile: "none", stdin: "open", feedback: "silent", lasting: true },
    hear: (piece) => wire.hear(piece),
    // What the turn's own grace leaves to it.
    graceMs: Math.max(1, Math.round(turn.graceMs * TIDY_SHARE)),
    limits: { outputBytesMax: OUTPUT_KEPT_BYTES_MAX },
  });
  started.resolve(child);
  link = new AgentProcess({ name, leave, stopMs, clock: turn.clock, child, wire });
  return link;
}

const asItCame = (params: unknown): unknown => params;
const ignore = (): void => {};
