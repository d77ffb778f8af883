// The requests of a client, in either version of the protocol: sessions, prompts, and everything that stops.
//
// Invariants
// 1. Prompts and stops take effect in the tick in which they arrive, so in the order in which they were sent.
// 2. A stop does not need a session that is open on this connection, only permission to stop it.
// 3. Opening and closing a session are serialised. A session counts as closed from the arrival of its close request.
// 4. Every control request leaves an audit record, even if it is refused. A failed write blocks nothing.

import { ControlError } from "../../../core/errors.ts";
import type { CancelReceipt, SessionReceipt } from "../../../core/model/cancel.ts";
import {
  sessionOf as homeOf,
  isCallId,
  isProcessId,
  isRunId,
  type ProcessId,
  type SessionId,
} from "../../../core/model/ids.ts";
import type { Delivery, Json, Prompt } from "../../../core/model/prompt.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { BelayControl, RunControl, SessionControl } from "../../../ports/control.ts";
import type { Explanation } from "../../../ports/explanation.ts";
import type { SessionRow } from "../../../ports/store.ts";
import { cancelCall, type StoppedCall } from "../../cancel-call.ts";
import { type AcpClientInfo, allow, isAllowed, isOwn, sessionOf } from "./acp-client-info.ts";
import type { AgentBehind } from "./agent-behind.ts";
import { AgentSettings, endProcesses } from "./agent-settings.ts";
import { AttachedSession, type From } from "./attached-session.ts";
import { type Audit, AuditRecords, refused } from "./audit.ts";
import { PROMPTS_OPEN_MAX, SESSIONS_MAX } from "./limits.ts";
import { type ModeChoice, modalOf } from "./mode-choice.ts";
import { type OwnPrompt, tooManyPrompts } from "./own-prompt.ts";
import type { Peer } from "./peer.ts";
import { NO_RUN } from "./permission-options.ts";
import { realPath } from "./real-path.ts";
import { invalidParams, unknownSession } from "./rpc-error.ts";
import { type ListOptions, type ListPage, listSessions } from "./session-list.ts";

export interface AcpSessionsOptions {
  readonly control: BelayControl;
  readonly clock: Clock;
  readonly client: AcpClientInfo;
  readonly directory: string;
  readonly audit: Audit | undefined;
  readonly notice: (text: string) => void;
  readonly onSession: ((session: OpenedSession) => void) | undefined;
  readonly behind: AgentBehind | undefined;
}

/** The resources that a client provided for a session. */
export interface OpenedSession {
  readonly sessionId: SessionId;
  readonly cwd: string;
  readonly mcpServers: readonly Json[];
  readonly additionalDirectories: readonly string[];
}

export type ClientResources = Omit<OpenedSession, "sessionId">;

export interface CallStopRequest {
  readonly sessionId: string;
  readonly call: string;
  readonly reason?: string | undefined;
  readonly remind?: boolean | undefined;
  readonly waitMs: number;
}

export class AcpSessions {
  /** Settings of the agent behind Belay; undefined if there is none in this program. */
  readonly agent: AgentSettings | undefined;
  readonly #options: AcpSessionsOptions;
  readonly #records: AuditRecords;
  readonly #sessions = new Map<SessionId, AttachedSession>();
  /** Closed by the client, but kept until the client has received how everything in them ended. */
  readonly #leaving = new Set<AttachedSession>();
  /** The last open or close request of each session. */
  readonly #turns = new Map<SessionId, Promise<unknown>>();
  /** Set by the first message, which determines the protocol version. */
  #peer: Peer | undefined;

  constructor(options: AcpSessionsOptions) {
    this.#options = options;
    this.#records = new AuditRecords(options);
    const { behind, client } = options;
    const parts = { client, records: this.#records, isOpen: (id: SessionId) => this.#sessions.has(id) };
    this.agent = behind === undefined ? undefined : new AgentSettings({ behind, ...parts });
  }

  get client(): AcpClientInfo {
    return this.#options.client;
  }

  /** Reports a problem that no answer can carry. */
  get notice(): AcpSessionsOptions["notice"] {
    return this.#options.notice;
  }

  /** Prompts that are not answered yet. */
  get prompts(): readonly OwnPrompt[] {
    return [...this.#sessions.values(), ...this.#leaving].flatMap((attached) => attached.prompts);
  }

  usePeer(peer: Peer): void {
    this.#peer ??= peer;
  }

  async create(resources: ClientResources): Promise<SessionId> {
    return this.#records.noted("create", undefined, async () => {
      allow(this.client, "prompt");
      this.#checkLimit();
      const { tenant } = this.client;
      const within = tenant === undefined ? {} : { tenant };
      const session = await this.#options.control.createSession({ cwd: resources.cwd, ...within });
      this.#options.onSession?.({ ...resources, sessionId: session.id });
      const attached = this.#attached(session, resources.cwd);
      await attached.attach("new", 0, await modalOf(this.#options.control));
      await this.#ignored(session.id, resources);
      return session.id;
    });
  }

  /** Opens an existing session. Requests that follow this one already find it open. */
  async open(id: string, from: Exclude<From, "new">, resources: ClientResources): Promise<AttachedSession> {
    allow(this.client, "read");
    const session = this.#options.control.session(sessionOf(this.client, id));
    if (!this.#sessions.has(session.id)) this.#checkLimit();
    const before = this.#sessions.get(session.id);
    const attached = before ?? this.#attached(session, resources.cwd);
    return this.#inTurn(session.id, async () => {
      try {
        const row = await openRow(session);
        if (row.cwd !== undefined && row.cwd !== realPath(resources.cwd)) throw wrongDirectory(row.cwd);
        this.#options.onSession?.({ ...resources, sessionId: session.id });
        await attached.attach(from, row.head, await modalOf(this.#options.control, session));
        await this.#ignored(session.id, resources);
        return attached;
      } catch (error) {
        if (before === undefined) this.#release(attached);
        throw error;
      }
    });
  }

  async list(options: ListOptions): Promise<ListPage> {
    const { control, client, directory } = this.#options;
    allow(client, "read");
    return listSessions(control, client, directory, options);
  }

  /** Registers a prompt synchronously. Throws if it is refused here; a refusal by Belay arrives with the answer. */
  prompt(id: string, prompt: Prompt, delivery: Delivery = "queue"): OwnPrompt {
    try {
      allow(this.client, "prompt");
      // It stops the live run, even one of another client.
      if (delivery === "interrupt") allow(this.client, "cancel");
      const attached = this.#sessions.get(sessionOf(this.client, id));
      if (attached === undefined) throw unknownSession(id);
      if (this.prompts.length >= PROMPTS_OPEN_MAX) throw tooManyPrompts();
      const own = attached.prompt(prompt, delivery);
      void own.run.accepted.then(
        ({ runId, joined }) =>
          this.#records.note("prompt", runId, { answer: joined === "steer" ? "steered" : "accepted" }),
        (error: unknown) => this.#records.note("prompt", id, refused(error)),
      );
      return own;
    } catch (error) {
      void this.#records.note("prompt", id, refused(error));
      throw error;
    }
  }

  /** Stops everything accepted before; or, if a run is named, only this run. */
  async cancel(id: string, { run, background }: SessionStop): Promise<SessionReceipt | CancelReceipt> {
    return this.#records.noted("cancel", run ?? id, async () => {
      allow(this.client, "cancel");
      const session = this.#options.control.session(sessionOf(this.client, id));
      if (run === undefined) return session.cancel({ reason: this.#reason(), background });
      return this.#cancelRun(session.id, run);
    });
  }

  /** Cancels a run by its id, even if another client started it. */
  async cancelRun(run: string, note?: string): Promise<CancelReceipt> {
    return this.#records.noted("cancel", run, async () => {
      allow(this.client, "cancel");
      const own = this.#own(run);
      if (own !== undefined) return own.cancel({ reason: this.#reason(note) });
      const home = isRunId(run) ? await this.#options.control.findSession(run) : undefined;
      // A run of another tenant is reported as unknown, so that not even its session is disclosed.
      if (home === undefined || !isOwn(this.client, home)) return { kind: "unknown" };
      return this.#cancelRun(home, run, note);
    });
  }

  /** Cancels a prompt of this connection in any phase. Never rejects, because no request awaits it. */
  async withdraw(own: OwnPrompt): Promise<void> {
    const work = async (): Promise<CancelReceipt> => {
      allow(this.client, "cancel");
      return own.run.cancel({ reason: this.#reason() });
    };
    await this.#records.noted("cancel", own.runId, work).catch(() => {});
  }

  /** Whether this is a known call that cannot be stopped alone. */
  isUnstoppable(id: string, call: string): boolean {
    const attached = isCallId(call) ? this.#sessions.get(sessionOf(this.client, id)) : undefined;
    return attached !== undefined && isCallId(call) && attached.isUnstoppable(call);
  }

  async cancelCall({ sessionId, call, reason, remind, waitMs }: CallStopRequest): Promise<StoppedCall> {
    return this.#records.noted("cancel", call, async () => {
      allow(this.client, "cancel");
      const session = this.#options.control.session(sessionOf(this.client, sessionId));
      const stop = { given: call, reason: this.#reason(reason), remind: remind ?? true, waitMs };
      return cancelCall(session, stop);
    });
  }

  async cancelProcess(id: string, process: string): Promise<CancelReceipt> {
    return this.#records.noted("cancel", process, async () => {
      allow(this.client, "cancel");
      const session = sessionOf(this.client, id);
      if (!isProcessOf(session, process)) return { kind: "unknown" };
      const receipt = await this.#options.control.cancel(process, { reason: this.#reason(), waitMs: 0 });
      return "runs" in receipt ? { kind: "unknown" } : receipt;
    });
  }

  /** Stops everything in the session and closes it on this connection. It can be loaded again. */
  async close(id: string): Promise<void> {
    await this.#records.noted("close", id, async () => {
      const { attached } = this.#openHere(id);
      this.#sessions.delete(attached.session.id); // @fault prompt-behind-a-close
      this.#leaving.add(attached);
      attached.leave();
      const cancelled = attached.session.cancel({ reason: this.#reason("The client closed the session") });
      return this.#inTurn(attached.session.id, async () => {
        try {
          const receipt = await cancelled;
          await this.#reportedEnd(attached, receipt);
          await endProcesses(attached.session);
          return receipt;
        } finally {
          this.#release(attached);
        }
      });
    });
  }

  /** Closes the session permanently: it accepts nothing more and is not listed. Its log is kept. */
  async remove(id: string): Promise<void> {
    await this.#records.noted("delete", id, async () => {
      allow(this.client, "cancel");
      const session = this.#options.control.session(sessionOf(this.client, id));
      await openRow(session);
      const receipt = await session.close({ reason: this.#reason("The client deleted the session") });
      const attached = this.#sessions.get(session.id);
      // A session that is being closed reports its end through that request.
      if (attached === undefined) await this.#turns.get(session.id);
      else await this.#reportedEnd(attached, receipt).finally(() => this.#release(attached));
      return receipt;
    });
  }

  /** The mode of a session that is open here; undefined if its agent has no modes. */
  choice(id: string): ModeChoice | undefined {
    return this.#sessions.get(sessionOf(this.client, id))?.choice;
  }

  /** Sets the mode, which may approve in advance. Resolves after the change was sent to the client. */
  async setMode(id: string, mode: string): Promise<void> {
    await this.#records.noted("set-mode", id, async () => {
      allow(this.client, "approve");
      const attached = this.#sessions.get(sessionOf(this.client, id));
      if (attached === undefined) throw unknownSession(id);
      const receipt = await attached.session.setMode(mode, { by: this.client.name });
      if (receipt.kind === "changed") await attached.reached(receipt.seq);
      return receipt;
    });
  }

  async explain(id: string): Promise<Explanation> {
    allow(this.client, "read");
    return this.#options.control.session(sessionOf(this.client, id)).explain();
  }

  /** Releases all sessions when the client is gone. Its runs continue. */
  leave(): void {
    for (const attached of [...this.#sessions.values(), ...this.#leaving]) this.#release(attached);
  }

  #own(run: string): RunControl | undefined {
    for (const attached of this.#sessions.values()) {
      const own = attached.run(run);
      if (own !== undefined) return own;
    }
    return undefined;
  }

  async #cancelRun(session: SessionId, run: string, note?: string): Promise<CancelReceipt> {
    const { control } = this.#options;
    const own = this.#sessions.get(session)?.run(run);
    if (own !== undefined) return own.cancel({ reason: this.#reason(note) });
    if (!isRunId(run) || (await control.findSession(run)) !== session) return { kind: "unknown" };
    const receipt = await control.cancel(run, { reason: this.#reason(note) });
    return "runs" in receipt ? { kind: "unknown" } : receipt;
  }

  #openHere(id: string): { readonly attached: AttachedSession } {
    allow(this.client, "cancel");
    const attached = this.#sessions.get(sessionOf(this.client, id));
    if (attached === undefined) throw unknownSession(id);
    return { attached };
  }

  /** Resolves when the client has received how everything in the receipt ended. */
  async #reportedEnd(attached: AttachedSession, receipt: SessionReceipt): Promise<void> {
    const { control } = this.#options;
    await Promise.allSettled(receipt.runs.map(async ({ runId }) => (await control.run(runId)).outcome));
    await Promise.allSettled(attached.prompts.map((own) => own.ended));
    const { head } = await attached.session.row();
    await attached.reached(head);
  }

  #attached(session: SessionControl, cwd: string): AttachedSession {
    const { control, clock, client, notice, behind } = this.#options;
    if (this.#peer === undefined) throw invalidParams("The connection was not initialized.");
    const answers = isAllowed(client, "approve") ? "may" : "may not";
    const attached = new AttachedSession({
      control,
      session,
      cwd,
      peer: this.#peer,
      clock,
      by: client.name,
      answers,
      notice,
      behind,
    });
    this.#sessions.set(session.id, attached);
    return attached;
  }

  #release(attached: AttachedSession): void {
    attached.release();
    this.#leaving.delete(attached);
    const { id } = attached.session;
    if (this.#sessions.get(id) === attached) this.#sessions.delete(id);
  }

  /** Runs after all earlier open and close requests of this session. */
  async #inTurn<T>(id: SessionId, work: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(id) ?? Promise.resolve()).then(work); // @fault opened-twice-at-once
    const over = turn.catch(() => {});
    this.#turns.set(id, over);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(id) === over) this.#turns.delete(id);
    }
  }

  /** Names the MCP servers that are not used, so that they are not dropped silently. */
  async #ignored(sessionId: SessionId, { mcpServers, cwd }: ClientResources): Promise<void> {
    if (mcpServers.length === 0 || this.#options.onSession !== undefined) return;
    const text = "This agent does not use MCP servers of the client: its tools come from its configuration.";
    const update = { type: "notice", title: `${mcpServers.length} MCP servers are ignored`, text } as const;
    await this.#peer?.send({ sessionId, cwd }, update, NO_RUN);
  }

  #checkLimit(): void {
    if (this.#sessions.size < SESSIONS_MAX) return;
    throw new ControlError("overloaded", `${SESSIONS_MAX} sessions are open on this connection already.`, {
      hint: "Close some of them with session/close.",
    });
  }

  #reason(note?: string): { readonly kind: "user"; readonly by: string; readonly note?: string } {
    return { kind: "user", by: this.client.name, ...(note === undefined ? {} : { note }) };
  }
}

/** The scope of `cancel`: a whole session, or one run of it. */
export interface SessionStop {
  readonly run: string | undefined;
  readonly background: "keep" | "stop";
}

async function openRow(session: SessionControl): Promise<SessionRow> {
  const row = await session.row();
  if (row.phase === "closed") throw unknownSession(session.id);
  return row;
}

const isProcessOf = (session: SessionId, id: string): id is ProcessId => isProcessId(id) && homeOf(id) === session;

const wrongDirectory = (cwd: string): Error =>
  invalidParams(`This session works in ${cwd}.`, "Send that directory as `cwd`, or make a new session.");
