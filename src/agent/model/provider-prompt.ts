// Converts a conversation into a provider prompt. Pure.
//
// Invariants
// 1. The prompt is valid for the strictest provider: user and assistant alternate, no message is empty, every call is
//    followed by exactly one result, and the last message is not the assistant's.
// 2. Stopped, lost and failed work is marked as such, so the model cannot take it for finished.
// 3. The text of a prompt that was withdrawn before it began is not sent (G6).
// 4. The same conversation gives the same prompt, and a longer conversation extends it: provider caches depend on it.
import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultPart,
} from "@ai-sdk/provider";
import { type Failure, failedWhileStopping, who } from "../../core/model/cancel.ts";
import type { RunId } from "../../core/model/ids.ts";
import type { Prompt } from "../../core/model/prompt.ts";
import type { Message, TranscriptCall, TranscriptResult } from "../../core/read/transcript.ts";
import { type Answered, type AnswerPart, answerParts, executedIds, isBlank, isCutOff } from "./provider-answer.ts";
import { resultOutput } from "./provider-result.ts";

export type UserPart = LanguageModelV4TextPart | LanguageModelV4FilePart;

/** Turns a user's prompt into model input. Default: its text alone. */
export type UserContent = (prompt: Prompt) => readonly UserPart[];

export interface PromptOptions {
  readonly system?: string;
  readonly toUser?: UserContent;
}

export function providerPrompt(messages: readonly Message[], options: PromptOptions = {}): LanguageModelV4Prompt {
  const from = Math.max(
    0,
    messages.findLastIndex(({ role }) => role === "summary"),
  );
  const writer = new Writer(options.toUser ?? textOnly, messages);
  for (let at = from; at < promptEnd(messages); at += 1) {
    const message = messages[at];
    const next = messages[at + 1];
    if (message !== undefined) writer.write(message, next?.role === "tool" ? next.results : []);
  }
  const prompt = writer.end();
  const { system = "" } = options;
  return isBlank(system) ? prompt : [{ role: "system", content: system }, ...prompt];
}

/** The end of the messages to send: a turn that was cut off and is requested again is not part of the history. */
function promptEnd(messages: readonly Message[]): number {
  return 1 + messages.findLastIndex((one) => one.role !== "assistant" || one.calls.length > 0 || !isCutOff(one.finish));
}

class Writer {
  readonly #toUser: UserContent;
  readonly #all: readonly Message[];
  readonly #ids: WireIds;
  readonly #out: LanguageModelV4Message[] = [];
  /** Runs that were withdrawn before they began. Nothing of them is sent. */
  readonly #withdrawn: ReadonlySet<RunId>;
  /** Notes that precede the next user message. */
  #pendingNotes: string[] = [];

  constructor(toUser: UserContent, all: readonly Message[]) {
    this.#toUser = toUser;
    this.#all = all;
    this.#withdrawn = new Set(all.flatMap((one) => (one.role === "user" && one.withdrawn === true ? [one.runId] : [])));
    this.#ids = new WireIds(all.flatMap((one) => (one.role === "assistant" ? executedIds(one) : [])));
  }

  write(message: Message, results: readonly TranscriptResult[]): void {
    switch (message.role) {
      case "user":
        if (message.withdrawn !== true) this.#user(this.#userParts(message));
        return;
      case "note":
        this.#user([text(`<note kind="${message.item.kind}">${inNote(message.item.text)}</note>`)]);
        return;
      case "summary":
        this.#summary(message);
        return;
      case "assistant":
        this.#assistant(message, results);
        return;
      case "tool":
        return; // Written with the calls that they answer.
    }
  }

  end(): LanguageModelV4Prompt {
    if (this.#pendingNotes.length > 0) this.#user([]);
    const last = this.#out.at(-1)?.role;
    if (last === undefined || last === "assistant") this.#user([text("<note>Go on.</note>")]);
    return this.#out;
  }

  #userParts(message: Extract<Message, { role: "user" }>): readonly UserPart[] {
    const { text: words, data } = message;
    const parts = this.#toUser(data === undefined ? { text: words } : { text: words, data });
    const content = parts.filter((part) => part.type !== "text" || !isBlank(part.text));
    return content.length > 0 ? content : [text("<note>The user sent a message without text.</note>")];
  }

  #user(parts: readonly UserPart[]): void {
    const all = [...this.#pendingNotes.map((aside) => text(`<note>${inNote(aside)}</note>`)), ...parts];
    this.#pendingNotes = [];
    const last = this.#out.at(-1);
    // @fault two-messages-of-one
    if (last?.role === "user") last.content.push(...all);
    else this.#out.push({ role: "user", content: all });
  }

  /** Repeats the user's request in full: its attachments are not in the summary, and it is still being worked on. */
  #summary({ text: summary, request, runId }: Extract<Message, { role: "summary" }>): void {
    const userMessage = this.#all.find((one) => one.role === "user" && one.runId === runId);
    this.#user([text(`<summary>\n${summary}\n</summary>`), text(WORKING_ON)]);
    if (userMessage?.role === "user") this.#user(this.#userParts(userMessage));
    else if (!isBlank(request)) this.#user([text(request)]);
  }

  #assistant(answer: Answered, results: readonly TranscriptResult[]): void {
    const { calls, again, runId } = answer;
    if (this.#withdrawn.has(runId)) return;
    if (again === true && calls.length === 0) return;
    const ids = calls.map((call) => this.#ids.of(call));
    const content = answerParts(answer, ids);
    if (content.length > 0) this.#answer(content);
    if (calls.length > 0) this.#out.push({ role: "tool", content: resultParts(answer, ids, content, results) });
    const aside = again === true ? undefined : noteAbout(answer);
    if (aside !== undefined) this.#pendingNotes.push(aside);
  }

  #answer(content: AnswerPart[]): void {
    const last = this.#out.at(-1);
    if (last === undefined) this.#user([text("<note>What was said before is not kept any more.</note>")]);
    if (last?.role === "assistant") last.content.push(...content);
    else this.#out.push({ role: "assistant", content });
  }
}

/** What a call id must look like for every provider; not every provider keeps to it in its own answers. */
const WIRE_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Gives each call an id that is unique in the request. The same calls in the same order get the same ids. */
class WireIds {
  readonly #used: Set<string>;
  #made = 0;

  /** `used`: ids of calls that the provider executed itself. */
  constructor(used: Iterable<string>) {
    this.#used = new Set(used);
  }

  /** The provider's own id of the call, if it is valid and unused. */
  of({ provider }: Pick<TranscriptCall, "provider">): string {
    let id = provider?.id ?? "";
    // @fault call-name-used-twice
    while (!WIRE_ID.test(id) || this.#used.has(id)) {
      this.#made += 1;
      id = `call_${this.#made}`;
    }
    this.#used.add(id);
    return id;
  }
}

/** One result for each call, in the order of the calls in the prompt. */
function resultParts(
  { calls }: Answered,
  ids: readonly string[],
  content: readonly AnswerPart[],
  results: readonly TranscriptResult[],
): LanguageModelV4ToolResultPart[] {
  const callsById = new Map(ids.map((id, index) => [id, calls[index]]));
  const resultsByCall = new Map(results.map((result) => [result.callId, result]));
  return content.flatMap((part) => {
    const call = part.type === "tool-call" ? callsById.get(part.toolCallId) : undefined;
    if (call === undefined || part.type !== "tool-call") return [];
    // @fault denied-call-without-a-result
    const result = resultsByCall.get(call.callId) ?? { outcome: { kind: "lost" } };
    const { toolCallId, toolName } = part;
    return [{ type: "tool-result", toolCallId, toolName, output: resultOutput(result) }];
  });
}

const WORKING_ON =
  "<note>The above stands for everything that was said before. You are working on this request:</note>";

/** A note about an answer that was cut off; undefined if it ended normally. */
function noteAbout({ finish, turnId, text: answerText, calls }: Answered): string | undefined {
  const begun = turnId !== undefined || answerText !== "" || calls.length > 0;
  const which = begun ? "Your previous answer" : "The request before, which you had not begun to answer,";
  const incomplete = begun ? " It is incomplete." : "";
  switch (finish.kind) {
    case "cancelled":
      return `${which} was stopped by ${who(finish.reason)}.${incomplete}${sentence(finish.error)}`;
    case "failed":
      return `${which} failed: ${finish.message.replace(/[.\s]+$/, "")}.${incomplete}`;
    case "lost":
      return `${which} was cut off when the server was.${incomplete}`;
    default:
      return undefined;
  }
}

const sentence = (error: Failure | undefined): string => (error === undefined ? "" : ` ${failedWhileStopping(error)}`);

/** The text must not close the tag around it. */
const inNote = (words: string): string => words.replaceAll(/<(?=\/note)/gi, "&lt;");

const text = (words: string): LanguageModelV4TextPart => ({ type: "text", text: words });
const textOnly: UserContent = (prompt) => [text(prompt.text)];
