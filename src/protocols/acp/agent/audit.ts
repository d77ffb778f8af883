// Audit records of control requests: actor, action and answer.
//
// Invariants
// 1. A record that cannot be written blocks nothing.
import { messageOf } from "../../../core/errors.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { AcpClientInfo } from "./acp-client-info.ts";
import { codeOf } from "./rpc-error.ts";

export interface AuditRecord {
  readonly id: string;
  /** Wall clock, ms. */
  readonly at: number;
  readonly actor: string;
  readonly via: "acp";
  readonly action: string;
  readonly target?: string;
  /** The kind of the receipt, or `refused`. */
  readonly answer: string;
  readonly code?: string;
  readonly tenant?: string;
}

export interface Audit {
  note(record: AuditRecord): Promise<void>;
}

export interface AuditRecordsOptions {
  readonly audit: Audit | undefined;
  readonly clock: Clock;
  readonly client: AcpClientInfo;
  readonly notice: (text: string) => void;
}

/** Belay's ids are shorter; a longer one was made up. */
const TARGET_CHARS_MAX = 128;

export class AuditRecords {
  readonly #options: AuditRecordsOptions;
  #count = 0;

  constructor(options: AuditRecordsOptions) {
    this.#options = options;
  }

  /** Runs `work` and records its result before it is returned. Synchronous up to the first await of `work`. */
  async noted<T>(action: string, target: string | undefined, work: () => Promise<T>): Promise<T> {
    try {
      const answer = await work();
      await this.note(action, target ?? (typeof answer === "string" ? answer : undefined), {
        answer: answerWord(answer),
      });
      return answer;
    } catch (error) {
      await this.note(action, target, refused(error));
      throw error;
    }
  }

  async note(action: string, target: string | undefined, answer: { answer: string; code?: string }): Promise<void> {
    const { audit, clock, client, notice } = this.#options;
    if (audit === undefined) return;
    this.#count += 1;
    const at = clock.now();
    try {
      await audit.note({
        ...{ id: `acp.${at.toString(36)}.${this.#count}`, at, actor: client.name, via: "acp", action, ...answer },
        ...(target === undefined ? {} : { target: target.slice(0, TARGET_CHARS_MAX) }),
        ...(client.tenant === undefined ? {} : { tenant: client.tenant }),
      });
    } catch (error) {
      notice(`The audit record of ${action} could not be written: ${messageOf(error)}`);
    }
  }
}

export const refused = (error: unknown): { readonly answer: string; readonly code: string } => ({
  answer: "refused",
  code: codeOf(error),
});

/** The answer as one word. */
function answerWord(answer: unknown): string {
  if (typeof answer !== "object" || answer === null) return "done";
  const { status, kind } = answer as { readonly status?: unknown; readonly kind?: unknown };
  if (typeof status === "string") return status;
  return typeof kind === "string" ? kind : "done";
}
