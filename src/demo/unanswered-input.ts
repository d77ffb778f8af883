// Extracts from a request what the demo model has not answered yet: results of its calls, texts of users, and notes.
import type { LanguageModelV4Prompt, LanguageModelV4ToolResultOutput } from "@ai-sdk/provider";

export interface UnansweredInput {
  /** Results of the calls that it requested last. Empty: a new prompt. */
  readonly results: readonly UnansweredResult[];
  /** Texts of users, oldest first: the prompt, or additions to it. */
  readonly texts: readonly string[];
  readonly notes: readonly UnansweredNote[];
  /** How many calls the session has had, so that the next id is unique. */
  readonly callsBefore: number;
}

export interface UnansweredResult {
  readonly name: string;
  readonly output: LanguageModelV4ToolResultOutput;
}

export interface UnansweredNote {
  /**
   * `cut`: an earlier answer is incomplete. `withdrawn`: the text before it was withdrawn. `result`: of a background
   * process.
   */
  readonly kind: "reminder" | "result" | "cut" | "withdrawn" | "other";
  readonly text: string;
}

type Piece = { readonly text: string } | { readonly note: UnansweredNote };

export function unansweredInput(prompt: LanguageModelV4Prompt): UnansweredInput {
  const last = prompt.findLastIndex(({ role }) => role === "assistant");
  const since = prompt.slice(last + 1);
  const notes: UnansweredNote[] = [];
  let results = since.flatMap(resultsOf);
  let texts: readonly string[] = [];
  for (const piece of since.flatMap((message) => (message.role === "user" ? message.content.map(pieceOf) : []))) {
    if ("text" in piece) {
      texts = [...texts, piece.text];
      continue;
    }
    notes.push(piece.note);
    // A withdrawal applies to the text before it; a cut answer ends everything before it.
    if (piece.note.kind === "withdrawn") texts = texts.slice(0, -1);
    if (piece.note.kind !== "cut") continue;
    results = [];
    texts = [];
  }
  return { results, texts, notes, callsBefore: prompt.flatMap(callsOf).length };
}

type Message = LanguageModelV4Prompt[number];

function resultsOf(message: Message): readonly UnansweredResult[] {
  if (message.role !== "tool") return [];
  return message.content.flatMap((part) =>
    part.type === "tool-result" ? [{ name: part.toolName, output: part.output }] : [],
  );
}

const callsOf = (message: Message): readonly object[] =>
  message.role === "assistant" ? message.content.filter(({ type }) => type === "tool-call") : [];

const NOTE = /^<note(?: kind="(\w+)")?>([\s\S]*)<\/note>$/;

function pieceOf(part: Extract<Message, { role: "user" }>["content"][number]): Piece {
  if (part.type !== "text") return { text: "" };
  const [, kind, text] = NOTE.exec(part.text) ?? [];
  if (text === undefined) return { text: part.text };
  if (kind === "reminder" || kind === "result") return { note: { kind, text } };
  if (kind === undefined && text.startsWith("Your previous answer")) return { note: { kind: "cut", text } };
  if (kind === undefined && text.startsWith("The request before")) return { note: { kind: "withdrawn", text } };
  return { note: { kind: "other", text } };
}
