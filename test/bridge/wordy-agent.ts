// An agent for bridges that run as processes: acts on the prompt, and reports its progress on stderr.
import type { Agent, Turn } from "../../src/ports/agent.ts";

const tell = (word: string): void => void process.stderr.write(`agent: ${word}\n`);

function untilCancelled({ signal }: Turn): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => {
      tell("cancelled");
      reject(signal.reason);
    });
    tell("waiting");
  });
}

/** Enough to fill every pipe and buffer many times over. */
const FLOOD_CALLS = 100;
const FLOOD_BYTES = 64 * 1024;

async function flood(turn: Turn): Promise<never> {
  for (let nth = 0; nth < FLOOD_CALLS; nth += 1) await turn.call("fill", nth, () => "x".repeat(FLOOD_BYTES));
  return untilCancelled(turn);
}

export const agent: Agent = async (turn) => {
  switch (turn.prompt.text) {
    case "wait":
      return untilCancelled(turn);
    case "flood":
      return flood(turn);
    case "print":
      console.log("a stray line");
      console.info({ stray: true });
      process.stdout.write("half a stray line");
      return "printed";
    default:
      return `heard ${turn.prompt.text}`;
  }
};
