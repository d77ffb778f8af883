// Answers to questions over the network. Each question is answered once.

import { ControlError } from "../core/errors.ts";
import type { Json } from "../core/model/prompt.ts";
import type { AnswerReceipt } from "../core/model/question.ts";
import type { AnswerOptions, AnswersControl, ApprovalOptions } from "../ports/control.ts";
import { checkJson, checkKey, checkQuestion, invalid, optionsOf, rejectUnknown } from "./input.ts";
import type { Connection } from "./transport/connection.ts";

export class ClientAnswers implements AnswersControl {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async allow(id: string, options: ApprovalOptions & { readonly remember?: "session" } = {}): Promise<AnswerReceipt> {
    const { remember, by, note, digest, key, ...rest } = optionsOf(options, "allow()");
    rejectUnknown(rest, "allow()");
    if (remember !== undefined && remember !== "session") throw invalid('`remember` is "session".');
    return this.#send(id, { kind: "allowed", remember, by, note, digest }, key);
  }

  async deny(id: string, options: ApprovalOptions = {}): Promise<AnswerReceipt> {
    const { by, note, digest, key, ...rest } = optionsOf(options, "deny()");
    rejectUnknown(rest, "deny()");
    return this.#send(id, { kind: "denied", by, note, digest }, key);
  }

  async answer(id: string, value: Json, options: AnswerOptions = {}): Promise<AnswerReceipt> {
    const { by, key, ...rest } = optionsOf(options, "answer()");
    rejectUnknown(rest, "answer()");
    checkJson(value, "An answer");
    return this.#send(id, { kind: "answered", value, by }, key);
  }

  async #send(id: string, body: object, given: string | undefined): Promise<AnswerReceipt> {
    const path = `/v1/questions/${checkQuestion(id)}/answer`;
    const key = checkKey(given) ?? this.#connection.chance.key();
    const receipt = await this.#connection.value<AnswerReceipt>({ method: "POST", path, body, key });
    if (receipt.kind === "refused") throw new ControlError(receipt.code, receipt.message);
    return receipt;
  }
}
