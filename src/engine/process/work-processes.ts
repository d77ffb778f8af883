// The processes of turns and calls: both can start one for the session and look one up; a call can also run one and
// wait for it. Processes of the session outlive the turn or call.
import { ControlError } from "../../core/errors.ts";
import { UNINTERRUPTED_PERCENT } from "../../core/limits.ts";
import { type CallId, type SessionId, sessionOf, type TurnId } from "../../core/model/ids.ts";
import type {
  CallProcesses as CallApi,
  CommandLine,
  CommandResult,
  ProcessInfo,
  ProcessResult,
  RunOptions,
  StartOptions,
  TurnProcesses as TurnApi,
} from "../../ports/spawner.ts";
import type { RunWork } from "../work/run-work.ts";
import { type LiveProcess, noteOf } from "./live-process.ts";
import { findProcess, orLimit, ProcessHandle } from "./process-handle.ts";
import { checkCommand, checkRun, checkStart } from "./validate-process.ts";

export class TurnProcesses implements TurnApi {
  readonly #work: RunWork;

  constructor(turn: RunWork) {
    this.#work = turn;
  }

  start(command: CommandLine, options: StartOptions = {}): Promise<ProcessHandle> {
    return this.#work.gate.settle(() => this.#start(command, options));
  }

  async #start(command: CommandLine, options: StartOptions): Promise<ProcessHandle> {
    const { id: by, lane, host } = this.#work;
    const { feedback = "next-turn", ...rest } = checkStart(options);
    const owner: SessionId = lane.id;
    const refusal = (): ControlError | undefined => refusalOf(this.#work);
    const begin = { owner, by, command: checkCommand(command), options: rest, feedback, refusal };
    const { id } = await host.handles.processes.begin(lane, begin);
    return handleOf(this.#work, id);
  }

  get(id: string): Promise<ProcessHandle> {
    const { gate, lane, host } = this.#work;
    return gate.settle(() => findProcess(host.handles, lane.id, id, gate, this.#work));
  }

  list(): Promise<readonly ProcessInfo[]> {
    const { gate, lane, host } = this.#work;
    return gate.settle(async () => host.handles.processes.list(lane));
  }
}

/** The parts of a call that its processes use. */
type Call = RunWork & {
  readonly id: CallId;
  readonly interruptible: boolean;
  /** Stores this as the partial result, if the tool has stored none. */
  keep(result: Omit<ProcessResult, "outcome">): void;
};

export class CallProcesses extends TurnProcesses implements CallApi {
  readonly #call: Call;

  constructor(call: Call) {
    super(call);
    this.#call = call;
  }

  run(command: CommandLine, options: RunOptions = {}): Promise<CommandResult> {
    return this.#call.gate.settle(() => this.#run(command, options));
  }

  async #run(command: CommandLine, options: RunOptions): Promise<CommandResult> {
    const { backgroundAfterMs, feedback = "next-turn", ...rest } = checkRun(options);
    const { id: owner, lane, host, interruptible } = this.#call;
    const { processes } = host.handles;
    const begin = { owner, command: checkCommand(command), options: rest, feedback: "silent" } as const;
    const refusal = (): ControlError | undefined => refusalOf(this.#call);
    // The command of a call that is not interruptible has time to finish, too.
    // @fault uninterrupted-command-stopped-at-once
    const share = interruptible ? 0 : UNINTERRUPTED_PERCENT / 100;
    const live = await processes.begin(lane, { ...begin, refusal, share });
    // It is stopped by the decision that stops its owner: the call, or the session once it is moved there.
    const result = await orLimit(host.clock, live.over, { limitMs: backgroundAfterMs });
    if (result !== undefined) return this.#ended(live, result);
    if (await processes.detach(lane, live.id, feedback)) {
      return { kind: "background", process: handleOf(this.#call, live.id) };
    }
    return this.#ended(live, await live.over);
  }

  /** It was stopped because its call was: then the call ends as stopped, too. */
  #ended(live: LiveProcess, result: ProcessResult | "late"): CommandResult {
    const { scope } = this.#call;
    if (result === "late") {
      const output = live.child === undefined ? undefined : noteOf(live.child.output);
      if (output !== undefined) this.#call.keep({ processId: live.id, output });
    } else if (scope.reason === undefined || result.outcome.kind !== "cancelled") {
      return { kind: "ended", ...result };
    } else this.#call.keep(result);
    throw scope.signal.reason ?? new ControlError("busy", `${live.id} is being killed, and its call is over.`);
  }
}

const handleOf = (work: RunWork, id: LiveProcess["id"]): ProcessHandle =>
  new ProcessHandle(work.host.handles, id, sessionOf(id), work.gate, work);

/** Code that has returned or is being stopped begins nothing, even if the log has no stop yet. */
// @fault begun-by-the-cancelled:start
const refusalOf = ({ scope, hasReturned, id }: RunWork): ControlError | undefined =>
  scope.reason === undefined && !hasReturned
    ? undefined
    : new ControlError("busy", `This ${isTurn(id) ? "turn" : "call"} begins nothing new.`);

const isTurn = (id: RunWork["id"]): id is TurnId => id.startsWith("turn_");
