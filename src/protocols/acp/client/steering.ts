// Delivers messages to an agent while it works, if it can accept them. Other messages are kept for the next prompt.
//
// Invariants
// 1. A message that was taken out of the queue is with the agent, or in the result of `end`; none is dropped. Only an
//    agent that accepts one without confirming it gets it twice.
// 2. `end` resolves within STEER_MS, whatever the agent does.
import type { Prompt } from "../../../core/model/prompt.ts";
import type { Turn } from "../../../ports/agent.ts";
import type { AgentProcess } from "./agent-process.ts";
import { isObject } from "./kept-json.ts";
import { STEER_MS, STEER_POLL_MS } from "./limits.ts";
import { promptBlocks } from "./prompt-blocks.ts";

/** The protocol has no method for it; several agents have agreed on this one. */
const STEER = "_session/steering";

export class Steering {
  readonly #turn: Turn;
  readonly #agentProcess: AgentProcess;
  readonly #sessionId: string;
  readonly #left: Prompt[] = [];
  #polling: Promise<void> = Promise.resolve();
  #dispose: () => void = ignore;
  #over = false;

  constructor(turn: Turn, agentProcess: AgentProcess, sessionId: string) {
    this.#turn = turn;
    this.#agentProcess = agentProcess;
    this.#sessionId = sessionId;
    if (agentProcess.capabilities.steers) this.#later();
  }

  /** Resolves with the messages that the agent has not accepted. */
  async end(): Promise<readonly Prompt[]> {
    this.#over = true;
    this.#dispose();
    await this.#polling;
    return this.#left;
  }

  #later(): void {
    if (this.#over) return;
    this.#dispose = this.#turn.clock.after(STEER_POLL_MS, () => {
      this.#polling = this.#poll().finally(() => this.#later());
    });
  }

  async #poll(): Promise<void> {
    try {
      if (this.#turn.signal.aborted) return;
      for (const prompt of await this.#turn.takeSteers()) {
        // In order: after one that was not accepted none is sent.
        if (this.#left.length > 0 || !(await this.#deliver(prompt))) this.#left.push(prompt);
      }
    } catch {
      // The store failed, which it reports itself, or the turn is over. Messages that were not taken stay queued.
    }
  }

  async #deliver(prompt: Prompt): Promise<boolean> {
    const { clock } = this.#turn;
    const limit = Promise.withResolvers<undefined>();
    const dispose = clock.after(STEER_MS, () => limit.resolve(undefined));
    try {
      const params = { sessionId: this.#sessionId, prompt: promptBlocks(prompt, this.#agentProcess.capabilities) };
      const answer = await Promise.race([this.#agentProcess.request<unknown>(STEER, params), limit.promise]);
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
