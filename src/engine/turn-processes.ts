// What a turn can do with processes: start one for its session, find one again. None of them ends with the turn.
import { ControlError } from "../core/control-error.ts";
import type { TurnId } from "../core/ids.ts";
import type { TurnProcesses as Api, CommandLine, ProcessInfo, StartOptions } from "../spawner.ts";
import { findProcess } from "./call-processes.ts";
import type { LiveLane } from "./live-lane.ts";
import { type HandleDesk, ProcessHandle, unpunished } from "./process-handle.ts";
import type { Scope } from "./scope.ts";
import { checkCommand, checkStart } from "./validate-process.ts";

interface Holder {
  readonly turnId: TurnId;
  readonly scope: Scope;
  /** The agent has returned. */
  isOver(): boolean;
}

export class TurnProcesses implements Api {
  readonly #desk: HandleDesk;
  readonly #lane: LiveLane;
  readonly #turn: Holder;

  constructor(desk: HandleDesk, lane: LiveLane, turn: Holder) {
    this.#desk = desk;
    this.#lane = lane;
    this.#turn = turn;
  }

  start(command: CommandLine, options: StartOptions = {}): Promise<ProcessHandle> {
    return unpunished(this.#start(command, options));
  }

  async #start(command: CommandLine, options: StartOptions): Promise<ProcessHandle> {
    const { feedback = "next-turn", ...rest } = checkStart(options);
    const { turnId, scope, isOver } = this.#turn;
    // Also a stop that no log has yet.
    const refusal = (): ControlError | undefined =>
      scope.reason === undefined && !isOver() ? undefined : new ControlError("busy", "This turn begins nothing new.");
    const begin = {
      owner: this.#lane.id,
      by: turnId,
      command: checkCommand(command),
      options: rest,
      feedback,
      refusal,
    };
    const { id } = await this.#desk.processes.begin(this.#lane, begin);
    return new ProcessHandle(this.#desk, id, this.#lane.id);
  }

  async get(id: string): Promise<ProcessHandle> {
    return findProcess(this.#desk, this.#lane.id, id);
  }

  async list(): Promise<readonly ProcessInfo[]> {
    return this.#desk.processes.list(this.#lane);
  }
}
