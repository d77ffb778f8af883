// What the demo model says and does next. Pure: a script, so that it needs no key, and is the same every time.
import type { Json } from "../core/model/prompt.ts";
import type { UnansweredInput, UnansweredNote, UnansweredResult } from "./unanswered-input.ts";

/** Said once in every run: nobody shall take the script for a model. */
export const DEMO_LABEL = "(demo)";

export interface ScriptPlan {
  /** What it thinks aloud before it speaks. */
  readonly thought: string | undefined;
  readonly text: string;
  readonly calls: readonly PlannedCall[];
}

export interface PlannedCall {
  readonly name: string;
  readonly input: Json;
}

/**
 * Stands in for whatever a program of somebody else would do: a shell and its children that ignore SIGTERM, one of them
 * in a session of its own, out of reach for whoever signals the group. They go on for as long as they are let.
 */
export const SLEEPER = [
  "trap '' TERM INT HUP",
  "sleep 300 & { setsid sleep 300 || sleep 300; } &",
  "echo a shell and its children are asleep; wait",
].join("\n");

interface Word {
  /** What it is called in the list of things to try. */
  readonly name: string;
  readonly does: string;
  readonly pattern: RegExp;
  readonly call: (found: string | undefined) => PlannedCall;
}

const WORDS: readonly Word[] = [
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
    ...{ name: "spawn", does: "runs a command that does not listen", pattern: /\b(?:spawn|sleep)/gi },
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
    ...{ name: "stubborn", does: "calls a tool that does not listen", pattern: /\bstubborn/gi },
    call: () => ({ name: "stubborn", input: {} }),
  },
];

/** All but the one that does not listen: that is for those who want to see it. */
const EVERYTHING = "list, count, spawn, write, ask";

export function planFor(heard: UnansweredInput): ScriptPlan {
  return heard.results.length === 0 ? answer(heard) : goOn(heard);
}

/** The first answer to something that people ask for. */
function answer({ said: [request = "", ...added], notes }: UnansweredInput): ScriptPlan {
  const calls = callsFor([request, ...added].join("\n"));
  const text = [DEMO_LABEL, ...noted(notes), ...added.map(acknowledged)];
  if (calls.length === 0) {
    // Nobody has said anything: something in the background has ended, and that is what there is to talk about.
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

/** After its calls: what came of them, and what people have said meanwhile. */
function goOn({ results, said, notes }: UnansweredInput): ScriptPlan {
  const calls = callsFor(said.join("\n"));
  const text = [...results.map(sentence), ...noted(notes), ...said.map(acknowledged)];
  const thought = "Let me see what came of it.";
  if (calls.length === 0) return { thought, text: text.join(" "), calls };
  return { thought, text: line([...text, `I call ${joined(calls.map(({ name }) => name))}.`]), calls };
}

/** With an end: the run goes on talking after its calls, and what its turns have said is read in one piece. */
const line = (sentences: readonly string[]): string => `${sentences.join(" ")}\n`;

/** Each word it knows leads to a call, in the order in which they were said. */
function callsFor(said: string): readonly PlannedCall[] {
  const words = /\beverything\b/i.test(said) ? EVERYTHING : said;
  return WORDS.flatMap(({ pattern, call }) =>
    [...words.matchAll(pattern)].map((match) => ({ at: match.index, call: call(match[1]) })),
  )
    .toSorted((one, other) => one.at - other.at)
    .map(({ call }) => call);
}

function friendly(request: string): readonly string[] {
  return [
    `You said ${quoted(request)}. I am a script and no model, so I know only a few words. Try one of these, or several`,
    `at once, and stop whatever you like: ${WORDS.map(({ name, does }) => `${name} (${does})`).join("; ")};`,
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

/** By whom, and why: the rest of what a model is told is for models that need telling. */
function denial(reason = ""): string {
  const why = short(reason.replace(/^(DENIED\W+)?(Not carried out\W+)?/, "").replace(/\n.*$/s, ""));
  return why === "" ? "" : `: ${why}`;
}

/** What a model is told of a call that somebody stopped, said back: by whom, why, and what there is of it. */
function stopped(name: string, told: string): string | undefined {
  const by = /^STOPPED by ([\s\S]*?)\. It did not fail/.exec(told)?.[1];
  if (by === undefined) return undefined;
  const changed = /^It is known to have changed:\n((?:- .*\n?)+)/m.exec(told)?.[1];
  const output = /^What there was of its output:\n([\s\S]*)$/m.exec(told)?.[1];
  return [
    `${name} was stopped by ${short(by)}.`,
    ...(told.includes("may still be going on") ? ["It did not listen, and may still be going on."] : []),
    ...(output === undefined ? [] : [`All I have of it: ${short(output)}.`]),
    ...(changed === undefined ? [] : [`It had changed ${joined(changed.trim().split("\n").map(item))}.`]),
  ].join(" ");
}

const item = (line: string): string => line.replace(/^- /, "");

/** What is heard twice is said once. */
const noted = (notes: readonly UnansweredNote[]): readonly string[] => [...new Set(notes.map(remark))];

function remark({ kind, text }: UnansweredNote): string {
  switch (kind) {
    case "reminder":
      return "I was reminded not to repeat what was stopped.";
    case "result":
      return reported(text);
    case "withdrawn":
      return "I know that something I had not begun is not wanted any more.";
    case "cut":
      return `I know: ${withoutStop(text.replace(/^Your previous/, "my last"))}.`;
    case "other":
      return `I was told: ${short(text)}.`;
  }
}

/** What a model is told of a background process, said back: which it was, how it ended, and its last words. */
function reported(told: string): string {
  const [, id, how, said] = RESULT.exec(told) ?? [];
  if (id === undefined || how === undefined) return `I was told: ${short(told)}.`;
  const last = said?.trimEnd().split("\n").at(-1) ?? "";
  return `Nobody had to ask: ${id} ${how}.${last === "" ? "" : ` Its last words: ${short(last)}.`}`;
}

const RESULT = new RegExp(
  [
    /^The background process (\S+) \([\s\S]*?\) ((?:ended|was|is|could)[^\n]*?)\./,
    /(?: It wrote [^\n]*)?(?:\nThe end of its output:\n([\s\S]*))?$/,
  ]
    .map(({ source }) => source)
    .join(""),
);

const acknowledged = (said: string): string => `You added ${quoted(said)}, and I heard it.`;

const quoted = (said: string): string => `“${short(said)}”`;

/** Longer than this is not said back: the demo is about stopping, not about reading aloud. */
const SHORT_CHARS_MAX = 160;

const short = (text: string): string => {
  const said = withoutStop(text.replaceAll(/\s+/g, " "));
  return said.length > SHORT_CHARS_MAX ? `${said.slice(0, SHORT_CHARS_MAX)}…` : said;
};

const withoutStop = (text: string): string => text.trim().replace(/\.$/, "");

function joined(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}
