// An agent that does what its prompt names. It waits for gates, never for time, and counts what it carries out.
import type { RunId } from "../../src/core/model/ids.ts";
import type { Json } from "../../src/core/model/prompt.ts";
import type { Agent, CallOptions, CallRequest, Execute, LiveCall, Turn, TurnResult } from "../../src/ports/agent.ts";
import { Gate } from "../../src/testing/gate.ts";

/** What the agent shares with the stage. */
export interface Acting {
  /** Called with each turn and call in the moment in which it begins. */
  readonly began: (id: string) => void;
  /** Called with each call whose tool comes to its end. */
  readonly ended: (id: string) => void;
  /** The last turn of this run has returned. */
  readonly finished: (runId: RunId) => void;
  readonly gates: Gates;
}

/** Doors with names. Once all are open, whoever comes later finds them open. */
export class Gates {
  readonly #gates = new Map<string, Gate>();
  #all = false;

  named(name: string): Gate {
    const gate = this.#gates.get(name) ?? new Gate();
    this.#gates.set(name, gate);
    if (this.#all) gate.open();
    return gate;
  }

  open(name: string): void {
    this.named(name).open();
  }

  openAll(): void {
    this.#all = true;
    for (const gate of this.#gates.values()) gate.open();
  }
}

type Act = (turn: Turn, acting: Acting) => Promise<TurnResult | string> | TurnResult | string;

/** The first word of the prompt says what is done. */
export function actingAgent(acting: Acting): Agent {
  const agent = async (turn: Turn): Promise<TurnResult | string> => {
    acting.began(turn.turnId);
    const act = ACTS[turn.prompt.text.split(" ")[0] ?? ""] ?? say;
    const result = await act(turn, acting);
    if (typeof result === "string") acting.finished(turn.runId);
    return result;
  };
  const resume: Agent["resume"] = ({ name, input }) => ({ name, input, execute: work(acting, "slow") });
  return Object.assign(agent, { resume, modes: MODES });
}

const MODES = [
  { id: "ask", name: "Ask" },
  { id: "code", name: "Code" },
] as const;

const say: Act = (turn) => {
  turn.emit("hello");
  return "done";
};

/** Waits for its gate; `heed`: or for its stop. */
async function pass(gate: Gate, signal: AbortSignal, manner: "heed" | "deaf"): Promise<void> {
  if (manner === "deaf") return gate.opened;
  await Promise.race([gate.opened, aborted(signal)]);
  if (!gate.isOpen) throw signal.reason;
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** A tool that is counted, and then waits for the gate of its name, if it has one. */
function work({ began, ended, gates }: Acting, gate?: string, manner: "heed" | "deaf" = "heed"): Execute {
  return async (call) => {
    began(call.callId);
    call.partial("some");
    if (gate !== undefined) await pass(gates.named(gate), call.signal, manner);
    ended(call.callId);
    return "worked";
  };
}

/** A tool that runs commands. */
const shell =
  ({ began, ended }: Acting, act: (call: LiveCall) => Promise<Json>): Execute =>
  async (call) => {
    began(call.callId);
    const result = await act(call);
    ended(call.callId);
    return result;
  };

async function called(turn: Turn, name: string, execute: Execute, options?: CallOptions): Promise<string> {
  const result = await turn.call(name, { name }, execute, options);
  return result.kind;
}

const request = (name: string, execute: Execute, more: Partial<CallRequest> = {}): CallRequest => ({
  name,
  input: { name },
  execute,
  ...more,
});

const ACTS: Readonly<Record<string, Act>> = {
  say,
  talk: async (turn, { gates }) => {
    turn.emit("one ");
    await pass(gates.named("talk"), turn.signal, "heed");
    turn.emit("two");
    return { usage: { inputTokens: 1, outputTokens: 2, estimated: false } };
  },
  wait: async (turn, { gates }) => {
    await pass(gates.named("wait"), turn.signal, "heed");
    return "waited";
  },
  deaf: async (turn, { gates }) => {
    await pass(gates.named("deaf"), turn.signal, "deaf");
    return "deaf";
  },
  fail: () => {
    throw new Error("the agent failed");
  },
  call: (turn, acting) => called(turn, "work", work(acting)),
  slow: (turn, acting) => called(turn, "slow", work(acting, "slow")),
  stubborn: (turn, acting) => called(turn, "stubborn", work(acting, "slow", "deaf")),
  approve: (turn, acting) => called(turn, "danger", work(acting), { approval: { deadlineMs: 5_000 } }),
  ask: async (turn) => (await turn.ask({ text: "which?", deadlineMs: 5_000 })).kind,
  calls: async (turn, acting) => {
    if (turn.spent.turns > 0) return "done";
    return { calls: [request("slow", work(acting, "slow")), request("work", work(acting))] };
  },
  approved: async (turn, acting) => {
    if (turn.spent.turns > 0) return "done";
    return { calls: [request("danger", work(acting), { approval: { deadlineMs: 5_000 } })] };
  },
  steerable: async (turn, { gates }) => {
    await pass(gates.named("steer"), turn.signal, "heed");
    const taken = await turn.takeSteers();
    return `took ${taken.length}`;
  },
  compact: async (turn) => {
    await turn.compact("what was said");
    return "compacted";
  },
  stop: async (turn) => {
    await turn.stop("enough");
    throw turn.signal.reason;
  },
  run: (turn, acting) =>
    called(
      turn,
      "shell",
      shell(acting, async ({ processes }) => (await processes.run("true")).kind),
    ),
  detach: (turn, acting) =>
    called(
      turn,
      "shell",
      shell(acting, async ({ processes }) => {
        return (await processes.run("true", { backgroundAfterMs: 100, feedback: "next-turn" })).kind;
      }),
    ),
  wake: (turn, acting) => begun(turn, acting, "wake"),
  next: (turn, acting) => begun(turn, acting, "next-turn"),
  silent: (turn, acting) => begun(turn, acting, "silent"),
};

const begun = (turn: Turn, acting: Acting, feedback: "wake" | "next-turn" | "silent"): Promise<string> =>
  called(
    turn,
    "shell",
    shell(acting, async ({ processes }) => (await processes.start("true", { feedback })).id),
  );
