// What a tool can do with processes: run one and wait, start one and go on, find one again.
import { ControlError } from "../core/control-error.ts";
import { isProcessId, type SessionId, sessionOf } from "../core/ids.ts";
import type {
  CallProcesses as Api,
  CommandLine,
  ProcessInfo,
  ProcessResult,
  Ran,
  RunOptions,
  StartOptions,
} from "../spawner.ts";
import type { LiveLane } from "./live-lane.ts";
import type { LiveProcess } from "./live-process.ts";
import { type HandleDesk, type Holder, orLimit, ProcessHandle, unpunished } from "./process-handle.ts";
import type { Scope } from "./scope.ts";
import { invalid } from "./validate.ts";
import { checkCommand, checkRun, checkStart } from "./validate-process.ts";

interface Call extends Holder {
  readonly scope: Scope;
  /** The tool has returned. */
  isOver(): boolean;
  /** Keeps what there is, if the tool has kept nothing itself. */
  keep(result: ProcessResult): void;
}

export class CallProcesses implements Api {
  readonly #desk: HandleDesk;
  readonly #lane: LiveLane;
  readonly #call: Call;

  constructor(desk: HandleDesk, lane: LiveLane, call: Call) {
    this.#desk = desk;
    this.#lane = lane;
    this.#call = call;
  }

  run(command: CommandLine, options: RunOptions = {}): Promise<Ran> {
    return unpunished(this.#run(command, options));
  }

  async #run(command: CommandLine, options: RunOptions): Promise<Ran> {
    const { backgroundAfterMs, feedback = "next-turn", ...rest } = checkRun(options);
    const { processes, clock } = this.#desk;
    const { callId } = this.#call;
    const begin = { owner: callId, command: checkCommand(command), options: rest, feedback: "silent" } as const;
    const refusal = (): ControlError | undefined => refusalOf(this.#call);
    const live = await processes.begin(this.#lane, { ...begin, refusal });
    // It is stopped with what owns it, by the decision that says so: the call, or the session once it is moved there.
    const result = await orLimit(clock, live.result, { limitMs: backgroundAfterMs });
    if (result !== undefined) return this.#ended(result);
    if (await processes.detach(this.#lane, live.id, feedback)) {
      return { kind: "background", process: this.#handle(live) };
    }
    return this.#ended(await live.result);
  }

  /** Stopped because its call was: then the call has been stopped too, and that is how it ends. */
  #ended(result: ProcessResult): Ran {
    const { scope } = this.#call;
    if (scope.reason === undefined || result.outcome.kind !== "cancelled") return { kind: "ended", ...result };
    this.#call.keep(result);
    throw scope.signal.reason;
  }

  start(command: CommandLine, options: StartOptions = {}): Promise<ProcessHandle> {
    return unpunished(this.#start(command, options));
  }

  async #start(command: CommandLine, options: StartOptions): Promise<ProcessHandle> {
    const { feedback = "next-turn", ...rest } = checkStart(options);
    const checked = checkCommand(command);
    const owner: SessionId = this.#lane.id;
    const refusal = (): ControlError | undefined => refusalOf(this.#call);
    const begin = { owner, by: this.#call.callId, command: checked, options: rest, feedback, refusal };
    const live = await this.#desk.processes.begin(this.#lane, begin);
    return this.#handle(live);
  }

  async get(id: string): Promise<ProcessHandle> {
    return findProcess(this.#desk, this.#lane.id, id, this.#call);
  }

  async list(): Promise<readonly ProcessInfo[]> {
    return this.#desk.processes.list(this.#lane);
  }

  #handle({ id }: LiveProcess): ProcessHandle {
    return new ProcessHandle(this.#desk, id, this.#lane.id, this.#call);
  }
}

/** Any process of a session, also one that has ended. */
export async function findProcess(
  desk: HandleDesk,
  session: SessionId,
  id: string,
  holder?: Holder,
): Promise<ProcessHandle> {
  if (typeof id !== "string" || !isProcessId(id)) throw invalid('The id of a process begins with "proc_".');
  if (sessionOf(id) === session && (desk.processes.get(id) !== undefined || (await desk.processes.isKnown(id)))) {
    return new ProcessHandle(desk, id, session, holder);
  }
  throw new ControlError("not_found", `There is no process ${id} in ${session}.`, {
    hint: "Use the id that starting it gave back, or list the processes of the session.",
  });
}

/** Whoever has returned begins nothing; nor who is being stopped, although no log may have the stop. */
// @fault begun-by-the-cancelled:start
const refusalOf = ({ scope, isOver }: Call): ControlError | undefined =>
  scope.reason === undefined && !isOver() ? undefined : new ControlError("busy", "This call begins nothing new.");
