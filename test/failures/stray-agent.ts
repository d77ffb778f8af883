// An agent whose tools leave something behind: a promise that fails when nobody waits for it, a timer, an open port.
import { createServer } from "node:net";
import type { Turn } from "../../src/ports/agent.ts";

const leftBehind: Readonly<Record<string, () => void>> = {
  stray: () => {
    void Promise.resolve().then(() => Promise.reject(new Error("nobody waits for me")));
  },
  handles: () => {
    setInterval(() => {}, 1_000);
    createServer().listen(0, "127.0.0.1");
  },
};

export const agent = async (turn: Turn): Promise<string> => {
  const [word = "", then = ""] = turn.prompt.text.split(" ");
  const leave = leftBehind[word];
  if (leave === undefined) return `heard ${turn.prompt.text}`;
  await turn.call(word, null, () => leave());
  if (then === "forever") {
    turn.emit("not listening\n");
    return new Promise(() => {});
  }
  return "left something behind";
};
