// A prompt on its way in: what is asked, and what whoever asks holds from the very tick on.
import type { Accepted, CommandOf } from "../core/command.ts";
import type { RunId, SessionId } from "../core/ids.ts";
import type { Delivery, Prompt } from "../core/prompt.ts";

export interface Asked {
  readonly prompt: Prompt;
  readonly delivery: Delivery;
  readonly key: string | undefined;
  /** What its session is made with, if that is asked together with it: under the same key it has to be the same. */
  readonly made?: Made;
}

export interface Prompted {
  readonly runId: RunId;
  readonly accepted: Promise<Accepted>;
}

/** The same, in a session that may have to be made first. */
export interface Begun extends Prompted {
  readonly sessionId: SessionId;
}

/** What a session is made with. */
export type Made = Pick<CommandOf<"create">, "title" | "cwd">;
