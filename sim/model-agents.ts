// The real agent loop in a simulated house: its model stands still until the scheduler moves it, and its tools are the
// calls that other schedules know as well.
import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { modelAgent } from "../src/agent/loop/agent.ts";
import { type Tool, type ToolOptions, tool } from "../src/agent/tools/tool.ts";
import type { TurnId } from "../src/core/model/ids.ts";
import type { Json } from "../src/core/model/prompt.ts";
import type { Agent, Approval, LiveCall, Turn, TurnResult } from "../src/ports/agent.ts";
import type { Actors, Watch } from "./actors.ts";
import { ModelTurn } from "./model-turn.ts";
import { ParkedRequest } from "./parked-request.ts";
import { HASTY_MS, LIMIT_MS, traitsIn } from "./plan.ts";

/** What the loop may use up, and how patient it is. In times that a schedule can live to see. */
export interface ModelOptions {
  readonly turnsMax: number;
  readonly tokensMax: number | undefined;
  readonly attemptsMax: number;
  readonly parallelMax: number;
  /** A longer request is preceded by a summary. */
  readonly compactAbove: number | undefined;
}

export const RETRY_FIRST_MS = 500;
export const RETRY_LAST_MS = 1_500;
export const FIRST_BYTE_MS = 4_000;
export const SILENT_MS = 5_000;

const SUMMARISE = "Summarise.";

/** Who must be told what the loop does. */
export interface ModelWatch {
  modelAsked(turn: ModelTurn, request: ParkedRequest): void;
  modelLetGo(turn: ModelTurn, request: ParkedRequest): void;
  /** Whether the next model is one that does not stop when it is told to. */
  deaf(): boolean;
}

interface Parts {
  readonly actors: Actors;
  readonly watch: Watch & ModelWatch;
  readonly options: ModelOptions;
  readonly elapsed: () => number;
}

/** What the model may ask for, and what the engine knows of each. Traits of a single call are in its input. */
export const TOOLS: Readonly<Record<string, Pick<ToolOptions<never>, "idempotent" | "interruptible" | "timeoutMs">>> = {
  read: { idempotent: true },
  write: {},
  build: { interruptible: false },
  fetch: { idempotent: true, timeoutMs: LIMIT_MS },
};

export class ModelAgents {
  readonly agent: Agent;
  readonly #parts: Parts;
  readonly #turns = new Map<TurnId, ModelTurn>();

  constructor(parts: Parts) {
    this.#parts = parts;
    const loop = this.#loop();
    const { resume = () => undefined } = loop;
    this.agent = Object.assign((turn: Turn) => this.#begin(turn, loop), { resume });
  }

  #loop(): Agent {
    const { turnsMax, tokensMax, attemptsMax, parallelMax, compactAbove } = this.#parts.options;
    return modelAgent({
      model: ({ turnId }) => this.#modelOf(turnId),
      tools: Object.fromEntries(Object.keys(TOOLS).map((name) => [name, this.#tool(name)])),
      parallelMax,
      budget: { turns: turnsMax, ...(tokensMax === undefined ? {} : { tokens: tokensMax }) },
      retry: { attemptsMax, firstMs: RETRY_FIRST_MS, lastMs: RETRY_LAST_MS },
      idle: { firstByteMs: FIRST_BYTE_MS, silentMs: SILENT_MS },
      ...(compactAbove === undefined ? {} : { compaction: { aboveTokens: compactAbove, instruction: SUMMARISE } }),
    });
  }

  #tool(name: string): Tool {
    return tool({
      description: `To ${name}.`,
      input: { jsonSchema: { type: "object" } },
      ...TOOLS[name],
      approval: approvalFor,
      execute: (_, call: LiveCall) => this.#parts.actors.executeTool(call),
    });
  }

  #begin(turn: Turn, loop: Agent): Promise<TurnResult | undefined> {
    const { actors, watch } = this.#parts;
    return new Promise((resolve, reject) => {
      if (actors.over) return;
      const actor = new ModelTurn(turn, resolve, reject);
      this.#turns.set(turn.turnId, actor);
      actors.turns.push(actor);
      watch.turnBegan(actor);
      const carriedOut = Promise.resolve(loop(this.#observed(actor))) as Promise<TurnResult | undefined>;
      void Promise.allSettled([carriedOut]).then(([ended]) => {
        if (!actors.over) actor.over(ended);
      });
    });
  }

  /** The turn as it is, with somebody who looks at what the loop reads and stops. */
  #observed(actor: ModelTurn): Turn {
    const { actors, watch } = this.#parts;
    const { turn } = actor;
    const transcript: Turn["transcript"] = async () => {
      const from = watch.known(actor);
      const messages = await turn.transcript();
      if (!actors.over) watch.transcriptRead(actor, messages, from);
      return messages;
    };
    const stop: Turn["stop"] = async (note) => {
      actor.stopsItself = true;
      const stopped = turn.stop(note);
      watch.stopped(actor, note, "asked");
      await stopped;
      if (!actors.over) watch.stopped(actor, note, "answered");
    };
    const seen = new Map<PropertyKey, unknown>(Object.entries({ transcript, stop }));
    return new Proxy(turn, { get: (of, name) => (seen.has(name) ? seen.get(name) : Reflect.get(of, name)) });
  }

  #modelOf(turnId: TurnId): LanguageModelV4 {
    return {
      specificationVersion: "v4",
      provider: "parked",
      modelId: "parked",
      supportedUrls: {},
      doGenerate: () => Promise.reject(new Error("The simulated model only streams.")),
      doStream: (options) => this.#asked(turnId, options).answer,
    };
  }

  #asked(turnId: TurnId, options: LanguageModelV4CallOptions): ParkedRequest {
    const { watch, elapsed, actors } = this.#parts;
    const turn = this.#turns.get(turnId);
    const [first] = options.prompt;
    const request = new ParkedRequest({
      purpose: first?.role === "system" && first.content === SUMMARISE ? "compaction" : "turn",
      options,
      deaf: !actors.over && watch.deaf(),
      elapsed,
      release: (one) => {
        if (turn !== undefined && !actors.over) watch.modelLetGo(turn, one);
      },
    });
    if (turn === undefined || actors.over) return request;
    watch.modelAsked(turn, request);
    turn.requests.push(request);
    return request;
  }
}

function approvalFor(input: Json): boolean | Approval {
  const traits = traitsIn(input);
  return traits.includes("hasty") ? { scope: "files", deadlineMs: HASTY_MS } : traits.includes("approval");
}
