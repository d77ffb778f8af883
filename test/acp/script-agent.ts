// An agent that does what its prompt says, step by step, and waits at gates: never for time.
//
//   say WORDS · think WORDS · gate NAME · deaf NAME (ignores a cancel) · call TOOL NAME (waits at the gate) ·
//   approve TOOL · ask · sh COMMAND · steers · fail WORDS · use TOKENS · done
import type { Agent, CallOptions, Execute, Turn, TurnResult } from "../../src/ports/agent.ts";
import { pass } from "./gates.ts";

type Step = (turn: Turn, rest: string) => Promise<TurnResult | undefined>;

const INPUT = { path: "a.txt", text: "hello" } as const;

async function called(turn: Turn, name: string, execute: Execute, options?: CallOptions): Promise<undefined> {
  const { kind } = await turn.call(name, INPUT, execute, options);
  turn.emit(`[${name} ${kind}]`);
}

const dirOf = ({ cwd = "/" }: Pick<Turn, "cwd">): string => cwd;

const STEPS: Readonly<Record<string, Step>> = {
  say: async (turn, rest) => void turn.emit(rest),
  think: async (turn, rest) => void turn.emit(rest, "reasoning"),
  gate: async (turn, rest) => void (await pass(dirOf(turn), rest, turn.signal)),
  deaf: async (turn, rest) => void (await pass(dirOf(turn), rest)),
  call: async (turn, rest) => {
    const [name = "tool", gate = name] = rest.split(" ");
    return called(turn, name, async (call) => {
      call.progress("half of it");
      await pass(dirOf(call), gate, call.signal);
      return "it is done";
    });
  },
  approve: async (turn, rest) => called(turn, rest, () => "it is done", { approval: true }),
  ask: async (turn) => {
    const asked = await turn.ask({ text: "Which colour?", options: ["red", "green"] });
    turn.emit(`[${asked.kind === "answered" ? String(asked.value) : asked.kind}]`);
  },
  sh: async (turn, rest) => {
    const run: Execute = async ({ processes }) => (await processes.run(rest, { graceMs: 50 })).kind;
    const { kind } = await turn.call("shell", { command: rest }, run);
    turn.emit(`[shell ${kind}]`);
  },
  steers: async (turn) => {
    for (const { text } of await turn.takeSteers()) turn.emit(`[steered ${text}]`);
  },
  fail: async (_, rest) => {
    throw new Error(rest);
  },
  use: async (_, rest) => ({ usage: { inputTokens: Number(rest), outputTokens: 1, estimated: false } }),
};

export const agent: Agent = async (turn) => {
  let result: TurnResult = {};
  for (const step of turn.prompt.text.split(";")) {
    const [, word = "", rest = ""] = /^\s*(\S+) ?([\s\S]*)$/.exec(step) ?? [];
    result = { ...result, ...(await STEPS[word]?.(turn, rest)) };
  }
  return result;
};
