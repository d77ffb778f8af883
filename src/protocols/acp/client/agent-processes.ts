// The running external agents, one per session, and how long they are kept.
//
// Invariants
// 1. One process per session: the next one is started only when the previous one is gone.
// 2. An idle process is ended after a while, and sooner if there are too many.
import type { SessionId } from "../../../core/model/ids.ts";
import type { Message } from "../../../core/read/transcript.ts";
import type { Turn } from "../../../ports/agent.ts";
import type { AgentProcess } from "./agent-process.ts";
import type { Settled } from "./external-agent-options.ts";
import { type PreparedSession, setUpSession } from "./session-setup.ts";

export class AgentProcesses {
  readonly #options: Settled;
  readonly #links = new Map<SessionId, AgentProcess>();
  /** Idle processes, the longest idle first, with the disposers of their timers. */
  readonly #idle = new Map<AgentProcess, () => void>();

  constructor(options: Settled) {
    this.#options = options;
  }

  /** Returns the session's agent process for this turn, or starts a new one. */
  async take(turn: Turn, messages: readonly Message[]): Promise<PreparedSession> {
    const known = this.#links.get(turn.sessionId);
    const answers = (await known?.answers) ?? true;
    if (known?.isOpen === true && known.sessionId !== undefined && answers) {
      this.#wake(known);
      known.answers = undefined;
      return { link: known, sessionId: known.sessionId, memory: "kept", leftOut: [], isReplacement: false };
    }
    if (known !== undefined) await known.stop({ kind: "policy", note: "It is no longer usable." });
    const seat = { ...(await setUpSession(turn, this.#options, messages)), isReplacement: !answers };
    const { sessionId } = turn;
    this.#links.set(sessionId, seat.link);
    void seat.link.ended.then(() => {
      this.#wake(seat.link);
      if (this.#links.get(sessionId) === seat.link) this.#links.delete(sessionId);
    });
    return seat;
  }

  /** Marks the process as idle after a turn. */
  rest(link: AgentProcess): void {
    if (!link.isOpen) return;
    this.#idle.set(
      link,
      link.clock.after(this.#options.idleMs, () => this.#part(link), "idle"),
    );
    const [longest] = this.#idle.keys();
    if (this.#idle.size > this.#options.idleMax && longest !== undefined) this.#part(longest);
  }

  #wake(link: AgentProcess): void {
    this.#idle.get(link)?.();
    this.#idle.delete(link);
  }

  #part(link: AgentProcess): void {
    this.#wake(link);
    // From now on no turn gets it: a turn that arrives meanwhile waits until it is gone.
    link.sessionId = undefined;
    void link.part({ kind: "policy", note: "It is idle." });
  }
}
