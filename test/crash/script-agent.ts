// An agent that does what its prompt's script says, and writes down what it really did. It finds its place after a
// crash as a model would: from the transcript.
import { appendFileSync } from "node:fs";
import type { Json } from "../../src/core/model/prompt.ts";
import type { Agent, CallDetails, CallOptions, CallRequest, Execute, LiveCall, Turn } from "../../src/ports/agent.ts";
import { pairingError } from "../oracle/check-transcript.ts";
import { note } from "./effects.ts";
import { HITS_VARIABLE } from "./points.ts";
import { type Script, type Step, scriptOf } from "./script.ts";

export interface AgentOptions {
  readonly effects: string;
  /** In the arguments of every command of this life. */
  readonly mark: string;
}

/** A command that only a stop ends is stopped by its call after this long, so that everything comes to rest. */
const COMMAND_MS_MAX = 300;

export function scriptAgent(options: AgentOptions): Agent {
  const agent = async (turn: Turn) => {
    const messages = await turn.transcript();
    const why = pairingError(messages);
    if (why !== undefined) note(options.effects, { kind: "bad-transcript", runId: turn.runId, why });
    const done = new Set(
      messages.flatMap((one) =>
        one.role === "assistant" && one.runId === turn.runId && one.again !== true ? [one.turnId] : [],
      ),
    );
    done.delete(turn.turnId);
    return new Player(turn, options).play(scriptOf(turn.prompt.data), done.size);
  };
  return Object.assign(agent, { resume: (call: CallDetails) => requestOf(call, options) });
}

class Player {
  readonly #turn: Turn;
  readonly #options: AgentOptions;

  constructor(turn: Turn, options: AgentOptions) {
    this.#turn = turn;
    this.#options = options;
  }

  async play(script: Script | undefined, at: number): Promise<string | { next: "turn" | "end"; calls: CallRequest[] }> {
    const steps = script?.turns[at];
    if (script === undefined || steps === undefined) return "nothing more";
    const calls: CallRequest[] = [];
    for (const [index, step] of steps.entries()) {
      if (this.#turn.signal.aborted) break;
      const name = `${at}.${index}`;
      if (step.do === "last-call") calls.push(requestOf({ name: step.do, input: inputOf(step, name) }, this.#options));
      else await this.#do(step, name);
    }
    const last = at + 1 >= script.turns.length;
    return { next: last && calls.length === 0 ? "end" : "turn", calls };
  }

  async #do(step: Step, name: string): Promise<void> {
    const turn = this.#turn;
    if (step.do === "steers") await turn.takeSteers();
    else if (step.do === "say") {
      for (let word = 0; word < step.words && !turn.signal.aborted; word += 1) {
        turn.emit(`word ${word} `);
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    } else {
      const { execute, ...request } = requestOf({ name: step.do, input: inputOf(step, name) }, this.#options);
      // A tool that kills its server does so each time it is asked, like one that does not know better.
      const again = step.do === "kill" ? ({ again: "begin" } as const) : {};
      await turn.call(request.name, request.input, execute, { ...request, ...again });
    }
  }
}

const inputOf = (step: Step, name: string): Json => ({ ...step, step: name });

/** The same for a turn and for a call that is begun again: everything about it is in its input. */
function requestOf({ name, input }: Pick<CallDetails, "name" | "input">, options: AgentOptions): CallRequest {
  // The edge: what `inputOf` has made.
  const step = input as unknown as Step & { readonly step: string };
  const execute: Execute = async (call) => {
    const about = { runId: call.runId, callId: call.callId, step: step.step };
    note(options.effects, { kind: "begin", ...about });
    await carryOut(step, call, options.mark);
    note(options.effects, { kind: "end", ...about });
    return step.step;
  };
  return { name, input, execute, ...optionsOf(step) };
}

function optionsOf(step: Step): CallOptions {
  if (step.do !== "call" && step.do !== "last-call") return {};
  return { ...(step.idempotent && { idempotent: true }), ...(step.approval && { approval: true }) };
}

async function carryOut(step: Step, call: LiveCall, mark: string): Promise<void> {
  switch (step.do) {
    case "call":
    case "last-call":
      return passed(step.ms, call.signal);
    case "command":
      await call.processes.run(commandOf(step.ms, mark), { timeoutMs: COMMAND_MS_MAX });
      return;
    case "background":
      await call.processes.start(commandOf(step.ms, mark), { feedback: step.feedback });
      return;
    case "kill":
      appendFileSync(process.env[HITS_VARIABLE] ?? "/dev/null", "poison\n");
      process.kill(process.pid, "SIGKILL");
      return;
    case "say":
    case "steers":
      return;
  }
}

/** With a child of its own that has left the group, so that a tree is what has to die. */
function commandOf(ms: number | undefined, mark: string): string {
  if (ms === undefined) return `setsid sleep ${mark} & sleep ${mark}`;
  return `: ${mark}; sleep ${ms / 1000}; echo done`;
}

function passed(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
  });
}
