// What a request tells the demo model that it has not answered yet: results of its calls, words of people, notes.
import type { LanguageModelV4Prompt, LanguageModelV4ToolResultOutput } from "@ai-sdk/provider";

export interface UnansweredInput {
  /** Results of the calls it has just asked for. None: it is asked something new. */
  readonly results: readonly UnansweredResult[];
  /** What people have said, oldest first: the request, or what they add to it. */
  readonly said: readonly string[];
  readonly notes: readonly UnansweredNote[];
  /** How many calls were asked for before, in the whole session: the next one has a number of its own. */
  readonly callsBefore: number;
}

export interface UnansweredResult {
  readonly name: string;
  readonly output: LanguageModelV4ToolResultOutput;
}

export interface UnansweredNote {
  /**
   * `cut`: an earlier answer did not come to its end. `withdrawn`: what was said before it is not wanted any more.
   * `result`: of something that went on in the background.
   */
  readonly kind: "reminder" | "result" | "cut" | "withdrawn" | "other";
  readonly text: string;
}

type Piece = { readonly said: string } | { readonly note: UnansweredNote };

export function unansweredInput(prompt: LanguageModelV4Prompt): UnansweredInput {
  const last = prompt.findLastIndex(({ role }) => role === "assistant");
  const since = prompt.slice(last + 1);
  const notes: UnansweredNote[] = [];
  let results = since.flatMap(resultsOf);
  let said: readonly string[] = [];
  for (const piece of since.flatMap((message) => (message.role === "user" ? message.content.map(pieceOf) : []))) {
    if ("said" in piece) {
      said = [...said, piece.said];
      continue;
    }
    notes.push(piece.note);
    // What was cut off is over, with all that it was about; what was withdrawn is the one thing said before.
    if (piece.note.kind === "withdrawn") said = said.slice(0, -1);
    if (piece.note.kind !== "cut") continue;
    results = [];
    said = [];
  }
  return { results, said, notes, callsBefore: prompt.flatMap(callsOf).length };
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
  if (part.type !== "text") return { said: "" };
  const [, kind, text] = NOTE.exec(part.text) ?? [];
  if (text === undefined) return { said: part.text };
  if (kind === "reminder" || kind === "result") return { note: { kind, text } };
  if (kind === undefined && text.startsWith("Your previous answer")) return { note: { kind: "cut", text } };
  if (kind === undefined && text.startsWith("The request before")) return { note: { kind: "withdrawn", text } };
  return { note: { kind: "other", text } };
}
