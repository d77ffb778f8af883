// Open questions, and answers to them. Each question is answered once.

import { ControlError } from "../core/errors.ts";
import { checkCallJson, checkKey, checkNote, invalid, optionsOf, rejectUnknown } from "../core/input.ts";
import { isQuestionId, type QuestionId } from "../core/model/ids.ts";
import type { Json } from "../core/model/prompt.ts";
import type { AnswerReceipt, QuestionReply } from "../core/model/question.ts";
import type { Engine } from "../engine/engine.ts";
import type { AnswerOptions, AnswersControl, ApprovalOptions } from "../ports/control.ts";
import { yieldEach } from "./yielding.ts";

export class Answers implements AnswersControl {
  readonly #engine: Engine;

  static {
    yieldEach(Answers, (answers) => answers.#engine.handles.gate);
  }

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** Lets the call run: this one, or with `remember: "session"` all calls of its kind in this session. */
  async allow(id: string, options: ApprovalOptions & { readonly remember?: "session" } = {}): Promise<AnswerReceipt> {
    const { remember, ...rest } = optionsOf(options, "allow()");
    if (remember !== undefined && remember !== "session") throw invalid('`remember` is "session".');
    return this.#decide(id, { kind: "allowed", ...(remember === undefined ? {} : { remember }) }, rest);
  }

  /** Rejects the call. The model receives who denied it and why, and continues. */
  async deny(id: string, options: ApprovalOptions = {}): Promise<AnswerReceipt> {
    return this.#decide(id, { kind: "denied" }, options);
  }

  /** Answers a question that is not an approval. */
  async answer(id: string, value: Json, options: AnswerOptions = {}): Promise<AnswerReceipt> {
    const { by, key, ...rest } = optionsOf(options, "answer()");
    rejectUnknown(rest, "answer()");
    const reply: QuestionReply = { kind: "answered", value: checkCallJson(value, "An answer"), ...named(by) };
    return this.#send(id, reply, { key });
  }

  async #decide(
    id: string,
    reply: Exclude<QuestionReply, { kind: "answered" }>,
    options: ApprovalOptions,
  ): Promise<AnswerReceipt> {
    const { by, note, key, digest, ...rest } = optionsOf(options, `${reply.kind === "allowed" ? "allow" : "deny"}()`);
    rejectUnknown(rest, `${reply.kind === "allowed" ? "allow" : "deny"}()`);
    const noted = note === undefined ? {} : { note: checkNote(note) };
    return this.#send(id, { ...reply, ...named(by), ...noted }, { key, digest });
  }

  async #send(
    id: string,
    reply: QuestionReply,
    { key, digest }: { readonly key: string | undefined; readonly digest?: string | undefined },
  ): Promise<AnswerReceipt> {
    const once = checkKey(key);
    const receipt = await this.#engine.questions.answer(checkQuestion(id), reply, {
      ...(once === undefined ? {} : { key: once }),
      ...(digest === undefined ? {} : { digest: checkNote(digest) }),
    });
    if (receipt.kind === "refused") throw new ControlError(receipt.code, receipt.message);
    return receipt;
  }
}

const named = (by: string | undefined): { readonly by?: string } => (by === undefined ? {} : { by: checkNote(by) });

function checkQuestion(id: string): QuestionId {
  if (typeof id !== "string" || !isQuestionId(id)) throw invalid('The id of a question begins with "ask_".');
  return id;
}
