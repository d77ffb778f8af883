// The agent of the soak: does what the first word of its prompt says, in every way in which an agent uses a house.
import type { Agent, CallRequest, LiveCall, Turn, TurnResult } from "../../src/ports/agent.ts";

const stopped = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

const later = (turn: Pick<Turn, "clock">, ms: number): Promise<void> =>
  new Promise((resolve) => void turn.clock.after(ms, () => resolve()));

/** So long does work go on that does not listen: longer than the grace of the house, so that it ends late. */
const DEAF_MS = 1_200;

const PIECE = "a piece of an answer that is about as long as those of a model are. ";

type Does = (turn: Turn, rest: string) => Promise<TurnResult | string>;

const DOES: Readonly<Record<string, Does>> = {
  say: async (turn, rest) => {
    for (let piece = 0; piece < Number(rest); piece += 1) {
      turn.emit(PIECE);
      if (piece % 8 === 7) await later(turn, 1);
    }
    return {};
  },
  /** So many turns, each with two calls inside it and two at its end. */
  turns: async (turn, rest) => {
    const input = { turn: turn.spent.turns };
    await Promise.all([1, 2].map((one) => turn.call("look", { ...input, one }, () => ({ found: one }))));
    if (turn.spent.turns >= Number(rest)) return "done";
    return {
      calls: [look(1), look(2)],
      text: "two more",
      usage: { inputTokens: 100, outputTokens: 10, estimated: true },
    };
  },
  wait: async (turn) => {
    turn.emit("waiting");
    return stopped(turn.signal);
  },
  /** Goes on until somebody sends it something. */
  attend: async (turn) => {
    while ((await turn.takeSteers()).length === 0) {
      turn.signal.throwIfAborted();
      await later(turn, 5);
    }
    return "heard";
  },
  call: async (turn) => (await turn.call("stay", {}, ({ signal }) => stopped(signal))).kind,
  /** Many listen to the same signal and never say that they have stopped. */
  listen: async (turn) => {
    await turn.call("listen", {}, ({ signal }) => listenTo(signal));
    listenTo(turn.signal);
    return "listened";
  },
  deaf: async (turn) => {
    await later(turn, DEAF_MS);
    return "too late";
  },
  fail: async (_, rest) => {
    throw new Error(rest);
  },
  approve: async (turn, rest) =>
    (await turn.call("write", { text: rest }, () => "written", { approval: { note: "May it?" } })).kind,
  ask: async (turn) => (await turn.ask({ text: "Which?", options: ["this", "that"] })).kind,
  run: async (turn, rest) => (await turn.call("run", { rest }, (call) => ran(call, rest), { again: "begin" })).kind,
  background: async (turn, rest) => {
    await turn.processes.start(rest, { feedback: "wake" });
    return "started";
  },
};

async function ran(call: LiveCall, command: string): Promise<string> {
  const result = await call.processes.run(command);
  return result.kind === "ended" ? result.outcome.kind : result.kind;
}

const look = (one: number): CallRequest => ({ name: "look", input: { one }, execute: () => ({ found: one }) });

function listenTo(signal: AbortSignal): void {
  for (let ear = 0; ear < 10; ear += 1) signal.addEventListener("abort", () => void ear);
}

export const agent: Agent = async (turn) => {
  const [, word = "", rest = ""] = /^(\S+)\s*([\s\S]*)$/.exec(turn.prompt.text) ?? [];
  const does = DOES[word];
  // What woke it by itself is no prompt of anybody's.
  return does === undefined ? "nothing to do" : does(turn, rest);
};
