// The context and result types of the bridge's methods. Types only.
import type { BelayControl } from "../../ports/control.ts";
import type { Params, RequestId } from "./message.ts";
import type { OwnPrompts } from "./own-prompts.ts";
import type { Subscriptions } from "./subscriptions.ts";

export type CloseMode = "park" | "cancel";

export interface MethodContext {
  readonly control: BelayControl;
  readonly prompts: OwnPrompts;
  readonly subscriptions: Subscriptions;
  readonly version: string;
  /** Sends a notification to the host, in order with the answers. */
  notify(method: string, params: unknown): Promise<void>;
  /** Shuts the bridge down after all open requests are answered. */
  shutDown(mode: CloseMode): Promise<unknown>;
}

export interface MethodRequest {
  /** Undefined for a notification, which gets no answer. */
  readonly id: RequestId | undefined;
  readonly params: Params;
  /**
   * Writes the audit record now, for a request that is answered much later. Only the first call counts; without it the
   * answer is recorded.
   */
  record(answer: string, target: string): void;
}

export type Reply =
  | {
      readonly kind: "now";
      readonly result: unknown;
      /** Called once the answer is sent. */
      readonly afterwards?: () => void;
    }
  /** Read when its turn comes: answers may be large, so only one is in memory at a time. */
  | { readonly kind: "read"; readonly read: () => Promise<unknown> };

export interface Method {
  readonly fields: readonly string[];
  /**
   * `look`: changes nothing. `change`: leaves an audit record. Both are refused during shutdown and under overload.
   * `stop`: leaves an audit record, and is never refused, neither for overload nor for an unknown field.
   */
  readonly sort: "look" | "change" | "stop";
  /** Called in the tick in which the line was read. Requests to the control are made before the first await. */
  handle(context: MethodContext, request: MethodRequest): Promise<Reply>;
}
