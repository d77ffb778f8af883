// A question with a typed answer, as a form for clients that support forms.
import type { Json } from "../../../core/model/prompt.ts";
import type { Question } from "../../../core/model/question.ts";
import type { Choice } from "./peer.ts";

export interface Form {
  readonly mode: "form";
  readonly sessionId: string;
  readonly message: string;
  readonly requestedSchema: {
    readonly type: "object";
    readonly properties: {
      readonly answer: { readonly type: "string"; readonly title: string; readonly enum?: string[] };
    };
    readonly required: string[];
  };
}

export function formOf(sessionId: string, { about }: Question): Form | undefined {
  if (about.kind !== "question") return undefined;
  const choices = about.only === true ? { enum: [...(about.options ?? [])] } : {};
  return {
    mode: "form",
    sessionId,
    message: about.text,
    requestedSchema: {
      type: "object",
      properties: { answer: { type: "string", title: "Answer", ...choices } },
      required: ["answer"],
    },
  };
}

export function answerOf(response: { readonly action: string; readonly content?: unknown }): Choice {
  const { action, content } = response;
  if (action !== "accept" || typeof content !== "object" || content === null) return { kind: "dismissed" };
  const value: unknown = (content as { readonly answer?: unknown }).answer;
  return isJson(value) ? { kind: "answer", value } : { kind: "dismissed" };
}

const isJson = (value: unknown): value is Json =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean";
