// Parses the input of the hands-on demo. Text that is not a command is a prompt for the agent.
import type { Delivery } from "../../../core/model/prompt.ts";

export type Command =
  | { readonly kind: "prompt"; readonly text: string; readonly delivery: Delivery }
  | { readonly kind: "stop-session" | "stop-run"; readonly note?: string }
  | { readonly kind: "stop-call"; readonly call: number; readonly note?: string }
  | { readonly kind: "allow"; readonly question?: number; readonly remember: boolean }
  | { readonly kind: "deny"; readonly question?: number; readonly note?: string }
  | { readonly kind: "answer"; readonly text: string }
  | { readonly kind: "drop"; readonly place: number }
  | { readonly kind: "queue" | "why" | "log" }
  | { readonly kind: "help" }
  | { readonly kind: "quit" }
  | { readonly kind: "nothing" }
  /** A malformed command. It is not sent to the agent: `stop` is meant to stop something. */
  | { readonly kind: "unclear"; readonly advice: string };

export const HANDS_ON_HELP: readonly string[] = [
  "TEXT             prompts the agent; while it is busy, the prompt is queued",
  "!TEXT  >TEXT     interrupts the live run; steers it",
  "stop             stops all that the session is doing (so does Ctrl-C)",
  "stop run         stops the live run; the queue continues",
  "stop 2           stops call or process number 2, and nothing else",
  "yes  no  always  answers an approval; if several are open: no 3 not today",
  "answer TEXT      answers a question; if several are open: answer 3 blue",
  "queue  drop 1    what waits; withdraws the first of them",
  "why  log         why the session is busy; the last of its log",
  "say TEXT         prompts the agent, even if the text looks like a command",
  "help  quit       this; leaves, and leaves nothing behind (or Ctrl-C twice)",
];

const NOTHING: Command = { kind: "nothing" };

export function commandOf(typed: string): Command {
  const line = typed.trim();
  if (line === "") return NOTHING;
  if (line.startsWith("!")) return prompt(line.slice(1), "interrupt");
  if (line.startsWith(">")) return prompt(line.slice(1), "steer");
  const [, word = "", rest = ""] = /^(\S+)\s*([\s\S]*)$/.exec(line) ?? [];
  switch (word.toLowerCase()) {
    case "say":
      return prompt(rest, "queue");
    case "stop":
      return stop(rest);
    case "yes":
    case "always":
      return allow(word.toLowerCase() === "always", rest) ?? prompt(line, "queue");
    case "no": {
      const { number, more } = numbered(rest);
      return { kind: "deny", ...(number === undefined ? {} : { question: number }), ...noteOf(more) };
    }
    case "answer":
      return rest === "" ? unclear("An answer has a text: answer blue") : { kind: "answer", text: rest };
    case "drop":
      return drop(rest);
    default:
      return ALONE.get(line.toLowerCase()) ?? prompt(line, "queue");
  }
}

/** Commands only without further text: "queue the parcels" is for the agent. */
const ALONE: ReadonlyMap<string, Command> = new Map<string, Command>([
  ["queue", { kind: "queue" }],
  ["why", { kind: "why" }],
  ["why?", { kind: "why" }],
  ["log", { kind: "log" }],
  ["help", { kind: "help" }],
  ["?", { kind: "help" }],
  ["quit", { kind: "quit" }],
  ["exit", { kind: "quit" }],
]);

function prompt(typed: string, delivery: Delivery): Command {
  const text = typed.trim();
  return text === "" ? NOTHING : { kind: "prompt", text, delivery };
}

function stop(rest: string): Command {
  const [, word = "", note = ""] = /^(\S*)\s*([\s\S]*)$/.exec(rest) ?? [];
  if (word === "") return { kind: "stop-session" };
  if (/^(run|session)$/i.test(word)) {
    return { kind: word.toLowerCase() === "run" ? "stop-run" : "stop-session", ...noteOf(note) };
  }
  const call = wholeNumber(word.replace(/^#/, ""));
  if (call !== undefined) return { kind: "stop-call", call, ...noteOf(note) };
  return unclear(
    `What should be stopped? Type stop, stop run, or stop with the number of a call. ${asPrompt(`stop ${rest}`)}`,
  );
}

/** `yes please` is an approval; `always be kind` is a prompt. */
function allow(remember: boolean, rest: string): Command | undefined {
  const { number, more } = numbered(rest);
  if (more !== "" && !/^please\W*$/i.test(more)) return undefined;
  return { kind: "allow", remember, ...(number === undefined ? {} : { question: number }) };
}

function drop(rest: string): Command {
  const place = wholeNumber(rest);
  if (place !== undefined) return { kind: "drop", place };
  return unclear(`Type drop with the number that the queue shows: drop 1. ${asPrompt(`drop ${rest}`)}`);
}

/** Splits off a number at the beginning. */
function numbered(text: string): { readonly number: number | undefined; readonly more: string } {
  const [, digits, more] = /^#?(\d{1,6})\b\s*([\s\S]*)$/.exec(text) ?? [];
  return digits === undefined ? { number: undefined, more: text } : { number: Number(digits), more: more ?? "" };
}

const wholeNumber = (text: string): number | undefined => (/^\d{1,6}$/.test(text) ? Number(text) : undefined);
const noteOf = (note: string): { readonly note?: string } => (note === "" ? {} : { note });
const unclear = (advice: string): Command => ({ kind: "unclear", advice });
const asPrompt = (text: string): string => `To send it to the agent: say ${text.trim()}`;
