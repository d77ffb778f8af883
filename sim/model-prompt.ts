// What a strict provider takes for a request. Written down here once more: it shares no rule with the code that makes
// requests.
import type { LanguageModelV4Message, LanguageModelV4Prompt } from "@ai-sdk/provider";

type Content = Exclude<LanguageModelV4Message, { role: "system" }>["content"][number];

/** What is wrong with it, in words; empty if nothing is. */
export function wrongWith(prompt: LanguageModelV4Prompt): readonly string[] {
  const said = prompt[0]?.role === "system" ? prompt.slice(1) : prompt;
  const wrong: string[] = [];
  if (said.some(({ role }) => role === "system")) wrong.push("there is a system message in the middle");
  if (said[0]?.role !== "user") wrong.push(`it begins with ${said[0]?.role ?? "nothing"}`);
  const last = said.at(-1)?.role;
  if (last !== "user" && last !== "tool") wrong.push(`it ends with ${last ?? "nothing"}`);
  const used = new Set<string>();
  said.forEach((message, at) => {
    if (message.role === "system") return;
    if (message.content.length === 0 || message.content.some(isHollow)) wrong.push(`${at} says nothing`);
    wrong.push(...neighbours(said, at));
    if (message.role !== "assistant") return;
    for (const id of callIds(message)) {
      if (used.has(id)) wrong.push(`the name ${id} is used for two calls`);
      used.add(id);
    }
  });
  return wrong;
}

const isHollow = (part: Content): boolean => part.type === "text" && part.text.trim() === "";

function neighbours(said: readonly LanguageModelV4Message[], at: number): readonly string[] {
  const message = said[at];
  const next = said[at + 1];
  if (message === undefined) return [];
  const wrong: string[] = [];
  if (next?.role === message.role) wrong.push(`${at} and ${at + 1} are both said by ${message.role}`);
  const asked = callIds(message);
  const results = next === undefined ? [] : resultIds(next);
  if (asked.length > 0 && asked.join() !== results.join()) {
    wrong.push(`the calls ${asked} have the results ${results.length === 0 ? "none" : results}`);
  }
  if (message.role === "tool" && callIds(said[at - 1]).length === 0) wrong.push(`${at} has results of no calls`);
  if (message.role === "assistant") {
    const first = message.content.findIndex(({ type }) => type === "tool-call");
    const behind = first !== -1 && message.content.slice(first).some(({ type }) => type === "text");
    if (behind) wrong.push(`${at} says something between its calls and their results`);
    if (message.content.at(-1)?.type === "reasoning") wrong.push(`${at} ends in a thought`);
  }
  return wrong;
}

function callIds(message: LanguageModelV4Message | undefined): readonly string[] {
  if (message?.role !== "assistant") return [];
  return message.content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []));
}

function resultIds(message: LanguageModelV4Message): readonly string[] {
  if (message.role !== "tool") return [];
  return message.content.flatMap((part) => (part.type === "tool-result" ? [part.toolCallId] : []));
}

/** A call with its result, as the model is told them. */
export interface ToldCall {
  readonly name: string;
  readonly input: unknown;
  /** `stopped` and `lost` are what the result says of itself. */
  readonly how: "done" | "denied" | "stopped" | "lost" | "failed";
}

export function toldCalls(prompt: LanguageModelV4Prompt): readonly ToldCall[] {
  const told: ToldCall[] = [];
  prompt.forEach((message, at) => {
    const next = prompt[at + 1];
    if (message.role !== "assistant" || next?.role !== "tool") return;
    for (const part of message.content) {
      if (part.type !== "tool-call") continue;
      const result = next.content.find((one) => one.type === "tool-result" && one.toolCallId === part.toolCallId);
      if (result?.type !== "tool-result") continue;
      told.push({ name: part.toolName, input: part.input, how: howOf(result.output) });
    }
  });
  return told;
}

type Output = Extract<Content, { type: "tool-result" }>["output"];

function howOf(output: Output): ToldCall["how"] {
  if (output.type === "execution-denied") return "denied";
  if (output.type !== "error-text") return "done";
  if (output.value.startsWith("STOPPED")) return "stopped";
  return output.value.startsWith("LOST") ? "lost" : "failed";
}

/** All that people have said, in one text. */
export function wordsOfUsers(prompt: LanguageModelV4Prompt): string {
  return prompt
    .flatMap((message) => (message.role === "user" ? message.content : []))
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("\n");
}
