// Hands people's words to an agent that works, if it can take them in meanwhile. What it cannot take is kept for the
// next prompt.
//
// Invariants
// 1. What was taken out of the queue is with the agent, or in what `end` gives back; nothing is dropped. Only an agent
//    that took it and does not say so is told a second time.
// 2. `end` resolves within STEER_MS, whatever the agent does.
import type { Prompt } from "../../../core/model/prompt.ts";
import type { Turn } from "../../../ports/agent.ts";
import type { AgentProcess } from "./agent-process.ts";
import { isObject } from "./kept-json.ts";
import { STEER_EVERY_MS, STEER_MS } from "./limits.ts";
import { promptBlocks } from "./prompt-blocks.ts";

/** There is no word for it in the protocol; this is what several agents have agreed on. */
const STEER = "_session/steering";

export class Steering {
  readonly #turn: Turn;
  readonly #link: AgentProcess;
  readonly #sessionId: string;
  readonly #left: Prompt[] = [];
  #looking: Promise<void> = Promise.resolve();
  #dispose: () => void = ignore;
  #over = false;

  constructor(turn: Turn, link: AgentProcess, sessionId: string) {
    this.#turn = turn;
    this.#link = link;
    this.#sessionId = sessionId;
    if (link.abilities.steers) this.#later();
  }

  /** What the agent is still to hear. */
  async end(): Promise<readonly Prompt[]> {
    this.#over = true;
    this.#dispose();
    await this.#looking;
    return this.#left;
  }

  #later(): void {
    if (this.#over) return;
    this.#dispose = this.#turn.clock.after(STEER_EVERY_MS, () => {
      this.#looking = this.#look().finally(() => this.#later());
    });
  }

  async #look(): Promise<void> {
    try {
      if (this.#turn.signal.aborted) return;
      for (const prompt of await this.#turn.takeSteers()) {
        // In their order: behind one that it has not taken it is told none.
        if (this.#left.length > 0 || !(await this.#tell(prompt))) this.#left.push(prompt);
      }
    } catch {
      // The store is in trouble, which its own notice says; or the turn is over. What was not taken waits.
    }
  }

  async #tell(prompt: Prompt): Promise<boolean> {
    const { clock } = this.#turn;
    const limit = Promise.withResolvers<undefined>();
    const dispose = clock.after(STEER_MS, () => limit.resolve(undefined));
    try {
      const params = { sessionId: this.#sessionId, prompt: promptBlocks(prompt, this.#link.abilities) };
      const answer = await Promise.race([this.#link.request<unknown>(STEER, params), limit.promise]);
      const { outcome } = isObject(answer) ? answer : {};
      return outcome === "injected" || outcome === "startedNewTurn";
    } catch {
      return false;
    } finally {
      dispose();
    }
  }
}

const ignore = (): void => {};
