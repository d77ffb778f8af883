// The answers of the demo model. A pure script, so that it needs no key and is deterministic.
import type { Json } from "../core/model/prompt.ts";
import type { UnansweredInput, UnansweredNote, UnansweredResult } from "./unanswered-input.ts";

/** Included in every run, so that the script is not mistaken for a model. */
export const DEMO_LABEL = "(demo)";

export interface ScriptPlan {
  /** The reasoning before the text. */
  readonly thought: string | undefined;
  readonly text: string;
  readonly calls: readonly PlannedCall[];
}

export interface PlannedCall {
  readonly name: string;
  readonly input: Json;
}

/**
 * A process tree that is hard to stop: a shell and its children that ignore SIGTERM, one of them in its own session,
 * where a signal to the group does not reach it. They run until they are killed.
 */
export const SLEEPER = [
  "trap '' TERM INT HUP",
  "sleep 300 & { setsid sleep 300 || sleep 300; } &",
  "echo a shell and its children are asleep; wait",
].join("\n");

interface Keyword {
  /** Its name in the list of things to try. */
  readonly name: string;
  readonly does: string;
  readonly pattern: RegExp;
  readonly call: (found: string | undefined) => PlannedCall;
}

const KEYWORDS: readonly Keyword[] = [
  {
    ...{ name: "list", does: "lists the files of its folder", pattern: /\blist\b/gi },
    call: () => ({ name: "list_files", input: {} }),
  },
  {
    ...{ name: "read", does: "reads one of them", pattern: /\bread(?:\s+([\w-]+\.\w+))?/gi },
    call: (name = "welcome.txt") => ({ name: "read_file", input: { name } }),
  },
  {
    ...{ name: "write", does: "writes one, if you approve", pattern: /\bwrite(?:\s+([\w-]+\.\w+))?/gi },
    call: (name = "notes.txt") => ({ name: "write_file", input: { name, text: "Written by the demo agent.\n" } }),
  },
  {
    ...{ name: "count", does: "counts slowly, to as much as you say" },
    pattern: /\b(?:count(?:\s+slowly)?|slow(?:ly)?)\b(?:\s+to\s+(\d{1,4}))?/gi,
    call: (to = "10") => ({ name: "count_slowly", input: { to: Number(to) } }),
  },
  {
    ...{ name: "spawn", does: "runs a command that ignores SIGTERM", pattern: /\b(?:spawn|sleep)/gi },
    call: () => ({ name: "run_command", input: { command: SLEEPER } }),
  },
  {
    ...{ name: "build", does: "starts something in the background", pattern: /\bbuild\b/gi },
    call: () => ({ name: "start_build", input: {} }),
  },
  {
    ...{ name: "ask", does: "asks you something", pattern: /\bask\b/gi },
    call: () => ({ name: "ask_colour", input: {} }),
  },
  {
    ...{ name: "stubborn", does: "calls a tool that ignores the stop", pattern: /\bstubborn/gi },
    call: () => ({ name: "stubborn", input: {} }),
  },
];

/** All but `stubborn`, which is slow to stop. */
const EVERYTHING = "list, count, spawn, write, ask";

export function planFor(input: UnansweredInput): ScriptPlan {
  return input.results.length === 0 ? answer(input) : continueAfterCalls(input);
}

/** The first answer to a prompt. */
function answer({ texts: [request = "", ...added], notes }: UnansweredInput): ScriptPlan {
  const calls = callsFor([request, ...added].join("\n"));
  const text = [DEMO_LABEL, ...noted(notes), ...added.map(acknowledged)];
  if (calls.length === 0) {
    // A run without a prompt reports a background process that has ended.
    const woken = notes.some(({ kind }) => kind === "result");
    return { thought: undefined, text: [...text, ...(woken ? [] : friendly(request))].join(" "), calls };
  }
  const names = calls.map(({ name }) => name);
  return {
    thought: "There are words in this that I know.",
    text: line([...text, `I call ${joined(names)}${names.length > 1 ? ", all at once" : ""}.`]),
    calls,
  };
}

/** The answer after its calls: their results, and what users have added meanwhile. */
function continueAfterCalls({ results, texts, notes }: UnansweredInput): ScriptPlan {
  const calls = callsFor(texts.join("\n"));
  const text = [...results.map(sentence), ...noted(notes), ...texts.map(acknowledged)];
  const thought = "Let me see what came of it.";
  if (calls.length === 0) return { thought, text: text.join(" "), calls };
  return { thought, text: line([...text, `I call ${joined(calls.map(({ name }) => name))}.`]), calls };
}

/** Ends with a newline: the run has more text after its calls, and the texts of its turns are printed together. */
const line = (sentences: readonly string[]): string => `${sentences.join(" ")}\n`;

/** One call for each keyword, in the order of the text. */
function callsFor(text: string): readonly PlannedCall[] {
  const searched = /\beverything\b/i.test(text) ? EVERYTHING : text;
  return KEYWORDS.flatMap(({ pattern, call }) =>
    [...searched.matchAll(pattern)].map((match) => ({ at: match.index, call: call(match[1]) })),
  )
    .toSorted((one, other) => one.at - other.at)
    .map(({ call }) => call);
}

function friendly(request: string): readonly string[] {
  return [
    `You said ${quoted(request)}. I am a script, not a model, so I know only a few words. Try one of these, or several`,
    `at once, and stop whatever you like: ${KEYWORDS.map(({ name, does }) => `${name} (${does})`).join("; ")};`,
    "everything (most of them, all at once).",
  ];
}

function sentence({ name, output }: UnansweredResult): string {
  switch (output.type) {
    case "text":
      return `${name} is done: ${short(output.value)}.`;
    case "json":
      return `${name} is done: ${short(JSON.stringify(output.value))}.`;
    case "execution-denied":
      return `${name} was not carried out${denial(output.reason)}.`;
    case "error-text":
      return stopped(name, output.value) ?? `${name} did not work: ${short(output.value)}.`;
    default:
      return `${name} is done.`;
  }
}

/** By whom and why a call was denied, without the advice for real models. */
function denial(reason = ""): string {
  const why = short(reason.replace(/^(DENIED\W+)?(Not carried out\W+)?/, "").replace(/\n.*$/s, ""));
  return why === "" ? "" : `: ${why}`;
}

/** Summarises the result of a stopped call: by whom, why, and its partial output. Undefined: it was not stopped. */
function stopped(name: string, result: string): string | undefined {
  const by = /^STOPPED by ([\s\S]*?)\. It did not fail/.exec(result)?.[1];
  if (by === undefined) return undefined;
  const changed = /^It is known to have changed:\n((?:- .*\n?)+)/m.exec(result)?.[1];
  const output = /^What there was of its output:\n([\s\S]*)$/m.exec(result)?.[1];
  return [
    `${name} was stopped by ${short(by)}.`,
    ...(result.includes("may still be going on") ? ["It ignored the stop, and may still be running."] : []),
    ...(output === undefined ? [] : [`All I have of it: ${short(output)}.`]),
    ...(changed === undefined ? [] : [`It had changed ${joined(changed.trim().split("\n").map(item))}.`]),
  ].join(" ");
}

const item = (line: string): string => line.replace(/^- /, "");

/** Remarks on the notes, without repetitions. */
const noted = (notes: readonly UnansweredNote[]): readonly string[] => [...new Set(notes.map(remark))];

function remark({ kind, text }: UnansweredNote): string {
  switch (kind) {
    case "reminder":
      return "I was reminded not to repeat what was stopped.";
    case "result":
      return reported(text);
    case "withdrawn":
      return "I know that a request I had not begun was withdrawn.";
    case "cut":
      return `I know: ${withoutStop(text.replace(/^Your previous/, "my last"))}.`;
    case "other":
      return `I was told: ${short(text)}.`;
  }
}

/** Summarises the note about a background process: its id, how it ended, and its last line of output. */
function reported(note: string): string {
  const [, id, how, output] = RESULT.exec(note) ?? [];
  if (id === undefined || how === undefined) return `I was told: ${short(note)}.`;
  const last = output?.trimEnd().split("\n").at(-1) ?? "";
  return `Background report: ${id} ${how}.${last === "" ? "" : ` Its last line: ${short(last)}.`}`;
}

const RESULT = new RegExp(
  [
    /^The background process (\S+) \([\s\S]*?\) ((?:ended|was|is|could)[^\n]*?)\./,
    /(?: It wrote [^\n]*)?(?:\nThe end of its output:\n([\s\S]*))?$/,
  ]
    .map(({ source }) => source)
    .join(""),
);

const acknowledged = (text: string): string => `You added ${quoted(text)}, and I got it.`;

const quoted = (text: string): string => `“${short(text)}”`;

/** Quoted texts are cut to this length. */
const SHORT_CHARS_MAX = 160;

const short = (text: string): string => {
  const line = withoutStop(text.replaceAll(/\s+/g, " "));
  return line.length > SHORT_CHARS_MAX ? `${line.slice(0, SHORT_CHARS_MAX)}…` : line;
};

const withoutStop = (text: string): string => text.trim().replace(/\.$/, "");

function joined(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
