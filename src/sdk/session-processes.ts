// The processes of a session: start one in the background, find and list them.

import { ControlError } from "../core/errors.ts";
import { checkLimit, invalid, optionsOf, rejectUnknown } from "../core/input.ts";
import type { Seq, SessionId } from "../core/model/ids.ts";
import type { ProcessRow } from "../core/model/rows.ts";
import type { Engine } from "../engine/engine.ts";
import type { SessionState } from "../engine/log/session-state.ts";
import { findProcess, ProcessHandle } from "../engine/process/process-handle.ts";
import { checkCommand, checkStart } from "../engine/process/validate-process.ts";
import type { ProcessesControl } from "../ports/control.ts";
import type { CommandLine, ProcessInfo, StartOptions } from "../ports/spawner.ts";
import { yieldEach } from "./yielding.ts";

export class SessionProcesses implements ProcessesControl {
  readonly #engine: Engine;
  readonly #session: SessionId;

  static {
    yieldEach(SessionProcesses, (processes) => processes.#engine.handles.gate);
  }

  constructor(engine: Engine, session: SessionId) {
    this.#engine = engine;
    this.#session = session;
  }

  /** Starts a command that lives as long as the session. When it exits, the model receives one notice. */
  async start(command: CommandLine, options: StartOptions = {}): Promise<ProcessHandle> {
    const checked = checkCommand(command);
    const { feedback = "next-turn", ...rest } = checkStart(options);
    const begin = { owner: this.#session, command: checked, options: rest, feedback };
    const live = await this.#engine.beginProcess(this.#session, begin);
    const { handles } = this.#engine;
    return new ProcessHandle(handles, live.id, this.#session, handles.gate);
  }

  /** Any process of this session, running or ended. */
  get(id: string): Promise<ProcessHandle> {
    const { handles } = this.#engine;
    return findProcess(handles, this.#session, id, handles.gate);
  }

  /** The running processes. */
  async list(): Promise<readonly ProcessInfo[]> {
    return this.#engine.processes.list(await this.#lane());
  }

  /** All processes there have been, newest first. */
  async history(page: { readonly before?: Seq; readonly limit?: number } = {}): Promise<readonly ProcessRow[]> {
    const { before = Number.MAX_SAFE_INTEGER, limit, ...rest } = optionsOf(page, "history()");
    rejectUnknown(rest, "history()");
    if (!Number.isInteger(before) || before < 0) throw invalid("`before` must be a position in the log.");
    await this.#lane();
    return this.#engine.store.processes(this.#session, { before, limit: checkLimit(limit) });
  }

  async #lane(): Promise<SessionState> {
    const lane = await this.#engine.loaded(this.#session);
    if (lane === undefined) throw new ControlError("not_found", `There is no session ${this.#session}.`);
    return lane;
  }
}
