// A running external agent: its process, and the connection over its pipes. There is one per session.
//
// Invariants
// 1. `ended` resolves when its whole process tree is gone and this is recorded. The connection is closed by then.
// 2. If the connection closes while the process lives, the process is useless and is ended.
// 3. Updates are passed to the current listener in order, before the answer that follows them; without a listener they
//    are dropped.
import { type ClientConnection, client, RequestError, type RequestPermissionResponse } from "@agentclientprotocol/sdk";
import type { GivenReason } from "../../../core/model/cancel.ts";
import type { ProcessId } from "../../../core/model/ids.ts";
import type { Turn } from "../../../ports/agent.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { ProcessHandle, ProcessResult, ProcessTree, TreeMember } from "../../../ports/spawner.ts";
import { AgentError, type FailureCode } from "./agent-errors.ts";
import { type Capabilities, readCapabilities } from "./capabilities.ts";
import type { ExternalAgentSettings, Leave } from "./external-agent-options.ts";
import { brief } from "./kept-json.ts";
import {
  CLEANUP_SHARE,
  ERROR_CHARS_MAX,
  EXIT_MS,
  OUTPUT_KEPT_BYTES_MAX,
  PROBE_MS,
  STDERR_BYTES_MAX,
} from "./limits.ts";
import { MessageStream } from "./message-stream.ts";
import { readSessionUpdate, type Update } from "./update.ts";

/** Receives the agent's updates, and answers its permission requests. */
export interface Listener {
  readonly sessionId: string;
  onUpdate(update: Update): void;
  /** `signal` aborts when the agent cancels the request, or is gone. */
  permission(params: unknown, signal: AbortSignal): Promise<RequestPermissionResponse>;
}

interface AgentProcessParts extends Pick<ExternalAgentSettings, "name" | "leave"> {
  readonly stopMs: number | undefined;
  readonly clock: Clock;
  readonly child: ProcessHandle;
  readonly wire: MessageStream;
}

export class AgentProcess {
  readonly name: string;
  readonly leave: Leave;
  readonly clock: Clock;
  /** Resolves with undefined if the outcome is unknown, because the session belongs to another worker. */
  readonly ended: Promise<ProcessResult | undefined>;
  listener: Listener | undefined = undefined;
  /** Receives updates that Belay does not record. */
  onUnrecorded: (raw: unknown) => void = ignore;
  capabilities: Capabilities = readCapabilities({});
  /** The agent's own session id, once it has one. */
  sessionId: string | undefined = undefined;
  /** Its answer when the session was opened: modes, models and options, if it has any. */
  menus: unknown = undefined;
  /** `ending`: its process is being ended, and nothing more is sent to it. */
  phase: "open" | "ending" | "over" = "open";
  /** How long it may take to answer a cancel. Default: a share of the turn's grace period. */
  readonly stopMs: number | undefined;
  /** Its child processes before its first prompt, such as its own servers. Undefined if they could not be listed. */
  baseline: readonly TreeMember[] | undefined = undefined;
  /** Processes that earlier runs have left running, if any. */
  leftRunning: ProcessHandle | undefined = undefined;
  /** Whether it still answers after processes that it had started were ended. Undefined if none were. */
  answers: Promise<boolean> | undefined = undefined;
  /** Notes for the model that are sent with the next prompt. */
  readonly pendingNotes: string[] = [];
  readonly #child: ProcessHandle;
  readonly #wire: MessageStream;
  readonly #connection: ClientConnection;

  constructor({ name, leave, stopMs, clock, child, wire }: AgentProcessParts) {
    this.name = name;
    this.stopMs = stopMs;
    this.leave = leave;
    this.clock = clock;
    this.#child = child;
    this.#wire = wire;
    this.#connection = client({ name: "belay" })
      .onRequest("session/request_permission", unchecked, ({ params, signal }) => this.#permission(params, signal))
      .connect(wire.stream);
    this.ended = this.#watch();
  }

  /** Handles a `session/update` of the agent. */
  onUpdate(params: unknown): void {
    const { sessionId, update } = readSessionUpdate(params);
    if (this.listener?.sessionId === sessionId) this.listener.onUpdate(update);
    // Settings and commands change between prompts too.
    else if (update.kind === "other" && (this.sessionId ?? sessionId) === sessionId) this.onUnrecorded(update.raw);
  }

  /** Whether requests can be sent. */
  get isOpen(): boolean {
    return this.phase === "open" && !this.#connection.signal.aborted;
  }

  get processId(): ProcessId {
    return this.#child.id;
  }

  get tree(): ProcessTree | undefined {
    return this.#child.tree;
  }

  /** Sends an unknown request: a working agent rejects it. */
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

  /** Sends a notification; errors are ignored, because an agent that is gone needs none. */
  notify(method: string, params: object): void {
    this.#connection.agent.notify(method, params).catch(ignore);
  }

  /** Ends its whole process tree. Resolves when it is gone. */
  async stop(reason: GivenReason): Promise<ProcessResult | undefined> {
    if (this.phase === "open") this.phase = "ending";
    // Rejects only if the store fails, which keeps the cancel, or if the process has ended.
    this.#child.cancel(reason).catch(ignore);
    return this.ended;
  }

  /** Closes its input and lets it exit by itself; ends it after a while. */
  async shutDown(reason: GivenReason): Promise<void> {
    try {
      this.#child.endInput();
    } catch {
      // The process has ended.
    }
    const limit = Promise.withResolvers<void>();
    const dispose = this.clock.after(EXIT_MS, () => limit.resolve(), "idle");
    await Promise.race([this.ended, limit.promise]);
    dispose();
    if (this.phase !== "over") await this.stop(reason);
  }

  /**
   * Creates the error for a failed agent, with its exit code and the end of its stderr. Only for an agent that is no
   * longer used.
   */
  async failed(code: FailureCode, what: string, result?: ProcessResult): Promise<AgentError> {
    const words = await exitReport(this.#child, result);
    const { strayLine, failure } = this.#wire;
    const cut = failure === undefined ? "" : ` Belay ended it: ${failure}.`;
    const stray = strayLine === undefined ? "" : ` It wrote a line to stdout that is not a message: ${strayLine}`;
    return new AgentError(code, `${this.name} ${what}.${cut}${words}${stray}`);
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

/** How the agent ended, with the end of its stderr, for an error message. */
async function exitReport(child: ProcessHandle, result: ProcessResult | undefined): Promise<string> {
  const { exit } = result ?? {};
  const how =
    exit?.code === undefined
      ? exit?.signal === undefined
        ? ""
        : ` by ${exit.signal}`
      : ` with exit code ${exit.code}`;
  const ended = result?.outcome.kind === "completed" && how !== "" ? ` It ended${how}.` : "";
  const stderr = await stderrOf(child);
  return `${ended}${stderr === "" ? " It wrote nothing to stderr." : ` The end of its stderr: ${stderr}`}`;
}

async function stderrOf(child: ProcessHandle): Promise<string> {
  try {
    const output = await child.output();
    const { head, tail } = output?.excerpt({ stream: "stderr", bytesMax: STDERR_BYTES_MAX, plain: true }) ?? NO_OUTPUT;
    return `${head}${tail === "" ? "" : ` … ${tail}`}`.trim().replaceAll(/\s*\n\s*/g, " | ");
  } catch {
    return "";
  }
}

const NO_OUTPUT = { head: "", tail: "" };

/** The agent's own error message. Undefined if the error did not come from the agent. */
export const agentErrorText = (error: unknown): string | undefined =>
  error instanceof RequestError ? brief(error.message, ERROR_CHARS_MAX) : undefined;

export const isLoginWanted = (error: unknown): boolean => error instanceof RequestError && error.code === LOGIN_WANTED;

const LOGIN_WANTED = -32_000;

/** Starts the program. Rejects with the spawner's error; then no process exists. */
export async function startAgentProcess(
  turn: Turn,
  options: ExternalAgentSettings,
  cwd: string,
): Promise<AgentProcess> {
  const { command, env, inherit = "all", name, leave, stopMs } = options;
  const started = Promise.withResolvers<ProcessHandle>();
  let agentProcess: AgentProcess | undefined;
  const wire = new MessageStream({
    write: async (line) => (await started.promise).write(line),
    // It sends no updates before the first request.
    onSessionUpdate: (params) => agentProcess?.onUpdate(params),
  });
  const child = await turn.processes.start(command, {
    ...{ cwd, env, inherit, profile: "none", stdin: "open", feedback: "silent", lasting: true },
    hear: (piece) => wire.push(piece),
    // The part of the turn's grace period that is left for its process.
    graceMs: Math.max(1, Math.round(turn.graceMs * CLEANUP_SHARE)),
    limits: { outputBytesMax: OUTPUT_KEPT_BYTES_MAX },
  });
  started.resolve(child);
  agentProcess = new AgentProcess({ name, leave, stopMs, clock: turn.clock, child, wire });
  return agentProcess;
}

const unchecked = (params: unknown): unknown => params;
const ignore = (): void => {};
