// An agent that does what the first word of its prompt says, at once: so that tests need not wait for a script.
import type { Agent, Turn } from "../../src/ports.ts";

const stopped = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });

const DOES: Readonly<Record<string, (turn: Turn, rest: string) => Promise<string>>> = {
  say: async (_, rest) => rest,
  /** Says something and then goes on until it is stopped. */
  wait: async (turn, rest) => {
    turn.emit(`${rest || "waiting"}\n`);
    return stopped(turn.signal);
  },
  /** The first time it goes on until it is stopped; taken up again, it is done. */
  resume: async (turn) => {
    const before = (await turn.transcript()).filter(({ role }) => role === "assistant").length;
    if (before > 0 || turn.attempt > 1) return "taken up again";
    turn.emit("begun\n");
    return stopped(turn.signal);
  },
  /** Goes on saying something until it is stopped. */
  drip: async (turn) => {
    while (!turn.signal.aborted) {
      turn.emit("drop\n");
      await new Promise((resolve) => turn.clock.after(1, () => resolve(undefined)));
    }
    return "";
  },
  /** Says more than any pipe holds. */
  flood: async (turn) => {
    while (!turn.signal.aborted) {
      turn.emit(`flood ${"x".repeat(1_000)}\n`);
      await new Promise((resolve) => turn.clock.after(0, () => resolve(undefined)));
    }
    return "";
  },
  /** Does not listen when it is asked to stop. */
  deaf: (turn) => {
    turn.emit("not listening\n");
    return new Promise(() => {});
  },
  fail: async (_, rest) => {
    throw new Error(rest || "it did not work");
  },
  /** Needs an approval for each of the files, one after the other. */
  write: async (turn, rest) => {
    const kinds: string[] = [];
    for (const path of rest.split(" ")) {
      const input = { path, text: "\u202eevil" };
      kinds.push((await turn.call("write_file", input, () => "written", { approval: true })).kind);
    }
    return `write_file: ${kinds.join(", ")}`;
  },
  ask: async (turn) => {
    const asked = await turn.ask({ text: "Which colour?", options: ["red", "green"] });
    return `colour: ${asked.kind === "answered" ? String(asked.value) : asked.kind}`;
  },
  shell: async (turn, rest) => {
    const result = await turn.call("shell", { command: rest }, async ({ processes }) => {
      const ran = await processes.run(rest);
      return ran.kind;
    });
    return `shell: ${result.kind}`;
  },
  /** Says it in every way that a careless tool has. */
  print: async (_, rest) => {
    console.log(rest);
    console.error(rest);
    process.stdout.write(`${rest}\n`);
    return "printed";
  },
  /** A variable of its environment. */
  env: async (_, rest) => process.env[rest] ?? "not set",
  /** What came with the prompt. */
  data: async (turn) => JSON.stringify(turn.prompt.data ?? null),
};

export const agent: Agent = async (turn) => {
  const [, word = "", rest = ""] = /^(\S+)\s*([\s\S]*)$/.exec(turn.prompt.text) ?? [];
  return (DOES[word] ?? (async () => `unknown word: ${word}`))(turn, rest.trimEnd());
};
