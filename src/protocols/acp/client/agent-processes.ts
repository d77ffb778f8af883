// The foreign agents that are running, one for each session, and how long they are kept.
//
// Invariants
// 1. One link per session: the next one is started only when the one before is gone.
// 2. A link that nobody works with is ended after a while, and sooner if there are too many of them.
import type { SessionId } from "../../../core/model/ids.ts";
import type { Message } from "../../../core/read/transcript.ts";
import type { Turn } from "../../../ports/agent.ts";
import type { AgentProcess } from "./agent-process.ts";
import type { Settled } from "./external-agent-options.ts";
import { type PreparedSession, setUpSession } from "./session-setup.ts";

export class AgentProcesses {
  readonly #options: Settled;
  readonly #links = new Map<SessionId, AgentProcess>();
  /** Those nobody works with, longest first, and what takes their end back. */
  readonly #idle = new Map<AgentProcess, () => void>();

  constructor(options: Settled) {
    this.#options = options;
  }

  /** A seat for this turn: the one its session had, or a new one. */
  async take(turn: Turn, messages: readonly Message[]): Promise<PreparedSession> {
    const known = this.#links.get(turn.sessionId);
    const answers = (await known?.answers) ?? true;
    if (known?.isOpen === true && known.sessionId !== undefined && answers) {
      this.#wake(known);
      known.answers = undefined;
      return { link: known, sessionId: known.sessionId, memory: "kept", leftOut: [], isReplacement: false };
    }
    if (known !== undefined) await known.stop({ kind: "policy", note: "It is of no use any more." });
    const seat = { ...(await setUpSession(turn, this.#options, messages)), isReplacement: !answers };
    const { sessionId } = turn;
    this.#links.set(sessionId, seat.link);
    void seat.link.ended.then(() => {
      this.#wake(seat.link);
      if (this.#links.get(sessionId) === seat.link) this.#links.delete(sessionId);
    });
    return seat;
  }

  /** The turn is over: its agent waits for the next one. */
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
    // From here on nobody gets it any more: whoever comes meanwhile waits until it is gone.
    link.sessionId = undefined;
    void link.part({ kind: "policy", note: "Nobody works with it." });
  }
}
