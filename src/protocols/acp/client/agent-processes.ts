// The running external agents, one per session, and how long they are kept.
//
// Invariants
// 1. One process per session: the next one is started only when the previous one is gone.
// 2. An idle process is ended after a while, and sooner if there are too many.
import type { SessionId } from "../../../core/model/ids.ts";
import type { Message } from "../../../core/read/transcript.ts";
import type { Turn } from "../../../ports/agent.ts";
import type { AgentProcess } from "./agent-process.ts";
import type { ExternalAgentSettings } from "./external-agent-options.ts";
import { type PreparedSession, setUpSession } from "./session-setup.ts";

export class AgentProcesses {
  readonly #options: ExternalAgentSettings;
  readonly #processes = new Map<SessionId, AgentProcess>();
  /** Idle processes, the longest idle first, with the disposers of their timers. */
  readonly #idle = new Map<AgentProcess, () => void>();

  constructor(options: ExternalAgentSettings) {
    this.#options = options;
  }

  /** Returns the session's agent process for this turn, or starts a new one. */
  async acquire(turn: Turn, messages: readonly Message[]): Promise<PreparedSession> {
    const known = this.#processes.get(turn.sessionId);
    const answers = (await known?.answers) ?? true;
    if (known?.isOpen === true && known.sessionId !== undefined && answers) {
      this.#cancelIdle(known);
      known.answers = undefined;
      return { agentProcess: known, sessionId: known.sessionId, memory: "kept", leftOut: [], isReplacement: false };
    }
    if (known !== undefined) await known.stop({ kind: "policy", note: "It is no longer usable." });
    const prepared = { ...(await setUpSession(turn, this.#options, messages)), isReplacement: !answers };
    const { sessionId } = turn;
    this.#processes.set(sessionId, prepared.agentProcess);
    void prepared.agentProcess.ended.then(() => {
      this.#cancelIdle(prepared.agentProcess);
      if (this.#processes.get(sessionId) === prepared.agentProcess) this.#processes.delete(sessionId);
    });
    return prepared;
  }

  /** Marks the process as idle after a turn. */
  release(agentProcess: AgentProcess): void {
    if (!agentProcess.isOpen) return;
    this.#idle.set(
      agentProcess,
      agentProcess.clock.after(this.#options.idleMs, () => this.#shutDown(agentProcess), "idle"),
    );
    const [longest] = this.#idle.keys();
    if (this.#idle.size > this.#options.idleMax && longest !== undefined) this.#shutDown(longest);
  }

  #cancelIdle(agentProcess: AgentProcess): void {
    this.#idle.get(agentProcess)?.();
    this.#idle.delete(agentProcess);
  }

  #shutDown(agentProcess: AgentProcess): void {
    this.#cancelIdle(agentProcess);
    // From now on no turn gets it: a turn that arrives meanwhile waits until it is gone.
    agentProcess.sessionId = undefined;
    void agentProcess.shutDown({ kind: "policy", note: "It is idle." });
  }
}
