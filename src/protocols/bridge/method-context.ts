// What the methods of the bridge work with, and what they hand back. Types only.
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
  /** A notification to the host, in order with the answers. */
  tell(method: string, params: unknown): Promise<void>;
  /** Ends the bridge, once what is asked by now is answered. */
  shutDown(mode: CloseMode): Promise<unknown>;
}

export interface MethodRequest {
  /** Undefined: a notification. Nobody waits for an answer. */
  readonly id: RequestId | undefined;
  readonly params: Params;
  /** Leaves the record now, for what is answered much later. Said once; without it, the answer is what is recorded. */
  noted(answer: string, target: string): void;
}

export type Reply =
  | {
      readonly kind: "now";
      readonly result: unknown;
      /** Done once the answer is on its way. */
      readonly afterwards?: () => void;
    }
  /** Read when its turn has come. It may be large, so there is one at a time. */
  | { readonly kind: "read"; readonly read: () => Promise<unknown> };

export interface Method {
  readonly fields: readonly string[];
  /**
   * `look`: changes nothing. `change`: leaves a record. Both are refused while the bridge ends or has too much to do.
   * `stop`: leaves a record, and is never refused, neither for that nor for a field it does not know.
   */
  readonly sort: "look" | "change" | "stop";
  /** Called in the tick in which the line was read: what it asks of the control it asks before it waits. */
  handle(context: MethodContext, asked: MethodRequest): Promise<Reply>;
}
