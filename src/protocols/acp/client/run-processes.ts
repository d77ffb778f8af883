// The processes that an external agent starts during a prompt. They belong to that run: its cancel ends them, and
// leaves the agent and its earlier processes running.
//
// Invariants
// 1. Only processes that started after the prompt was sent are ended with it.
// 2. Processes left running by a run that was not cancelled become a background process of the session, so that they
//    are listed, and ended by a stop of the session.
// 3. If the processes cannot be identified, the agent's own process is ended, and the answer says so.
import type { Turn } from "../../../ports/agent.ts";
import type { TreeEnd, TreeMember } from "../../../ports/spawner.ts";
import type { AgentProcess } from "./agent-process.ts";
import { brief } from "./kept-json.ts";
import { COMMANDS_GRACE_SHARE, COMMANDS_LIMIT_SHARE, NAME_CHARS_MAX } from "./limits.ts";

export class RunProcesses {
  readonly #turn: Turn;
  readonly #agentProcess: AgentProcess;
  /** Processes that ran before the prompt. Undefined if they could not be listed. */
  #before: readonly TreeMember[] | undefined = undefined;
  /** Processes that ran before the current call. */
  #beforeCall: Promise<readonly TreeMember[] | undefined> = Promise.resolve(undefined);

  constructor(turn: Turn, agentProcess: AgentProcess) {
    this.#turn = turn;
    this.#agentProcess = agentProcess;
  }

  get areListed(): boolean {
    return this.#before !== undefined;
  }

  /** Lists the existing processes. Must be awaited before the prompt is sent. */
  async begin(): Promise<void> {
    this.#before = await this.#list();
    this.#beforeCall = Promise.resolve(this.#before);
    this.#agentProcess.baseline ??= this.#before;
  }

  /** When no call is running, the processes that run now belong to none. */
  callEnded(open: number): void {
    if (open === 0) this.#beforeCall = this.#list();
  }

  /**
   * Ends the processes that one call has started. Does nothing if another call is running, because they cannot be told
   * apart.
   */
  async endOfCall(open: number, graceMs: number): Promise<void> {
    const before = open === 1 ? await this.#beforeCall : undefined;
    if (before !== undefined) await this.#agentProcess.tree?.endOthers(before, { graceMs, limitMs: 2 * graceMs });
  }

  /** Ends the processes that the run has started, within `leftMs`. Returns a remark for the answer. */
  async end(leftMs: number): Promise<string | undefined> {
    const ended = await this.#endAll(Math.max(0, leftMs));
    const { name } = this.#agentProcess;
    if (ended === undefined || ended.left.length > 0 || !ended.sure) {
      await this.#agentProcess.stop({ kind: "policy", note: NOT_SEPARABLE });
      return `\n\n[The processes that ${name} had started could not be ended separately, so ${name} was ended too.]`;
    }
    if (ended.ended.length === 0) return undefined;
    this.#agentProcess.probe();
    return `\n\n[Ended with the cancel: ${named(ended.ended)}.]`;
  }

  /** After a run that was not cancelled: hands the processes left running over to the session. */
  async handOver(): Promise<void> {
    const { baseline, processId, tree } = this.#agentProcess;
    if (baseline === undefined || tree === undefined || this.#agentProcess.leftRunning !== undefined) return;
    const left = others(await tree.members(), baseline);
    if (left.length === 0) return;
    const within = { process: processId, kept: baseline };
    const handle = await this.#turn.processes.start(titleOf(left), { feedback: "silent", within });
    this.#agentProcess.leftRunning = handle;
    const over = handle.wait().catch(() => undefined);
    void over.then((result) => {
      this.#agentProcess.leftRunning = undefined;
      // The agent may have lost a server process with them.
      if (result?.outcome.kind === "cancelled") this.#agentProcess.probe();
    });
  }

  async #endAll(leftMs: number): Promise<TreeEnd | undefined> {
    const { tree } = this.#agentProcess;
    if (tree === undefined || this.#before === undefined) return undefined;
    const limits = { graceMs: leftMs * COMMANDS_GRACE_SHARE, limitMs: leftMs * COMMANDS_LIMIT_SHARE };
    return tree.endOthers(this.#before, limits).catch(() => undefined);
  }

  async #list(): Promise<readonly TreeMember[] | undefined> {
    return this.#agentProcess.tree?.members().catch(() => undefined);
  }
}

const others = (found: readonly TreeMember[], kept: readonly TreeMember[]): readonly TreeMember[] => {
  const keys = new Set(kept.map(keyOf));
  return found.filter((one) => !keys.has(keyOf(one)));
};

const keyOf = ({ pid, startTime }: TreeMember): string => `${pid} ${startTime}`;

const COMMANDS_NAMED_MAX = 5;

/** The distinct command lines. */
function named(members: readonly TreeMember[]): string {
  const commands = [...new Set(members.map(({ command }) => command || "a process"))];
  const more = commands.length - COMMANDS_NAMED_MAX;
  const shown = commands.slice(0, COMMANDS_NAMED_MAX).map((one) => brief(one, NAME_CHARS_MAX));
  return `${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}

const titleOf = (left: readonly TreeMember[]): string => brief(named(left), NAME_CHARS_MAX);

const NOT_SEPARABLE = "The processes of the cancelled run could not be ended separately.";
