// What a prompt tells the agent of the crash loop to do: turns, each a list of steps. Travels as the prompt's data.
import type { Feedback } from "../../src/core/model/event.ts";
import type { Json } from "../../src/core/model/prompt.ts";

export type Step =
  /** Says so many words, one after the other. */
  | { readonly do: "say"; readonly words: number }
  /** A call that takes so long: made by the turn while it goes on, or asked for at its end. */
  | {
      readonly do: "call" | "last-call";
      readonly ms: number;
      readonly idempotent?: true;
      readonly approval?: true;
    }
  /** A command in the foreground of a call. Undefined: until it is stopped, which is done by a time limit at last. */
  | { readonly do: "command"; readonly ms?: number }
  /** A command in the background. */
  | { readonly do: "background"; readonly ms?: number; readonly feedback: Feedback }
  /** Takes in what people have sent meanwhile. */
  | { readonly do: "steers" }
  /** A tool that takes its server with it. */
  | { readonly do: "kill" };

export interface Script {
  /** The prompt's own name, whatever becomes of it. */
  readonly label: string;
  readonly turns: readonly (readonly Step[])[];
}

/** The edge: what the harness has sent, or nothing of its. */
export function scriptOf(data: Json | undefined): Script | undefined {
  if (typeof data !== "object" || data === null || !("label" in data) || !("turns" in data)) return undefined;
  return data as unknown as Script;
}

export const toData = (script: Script): Json => JSON.parse(JSON.stringify(script)) as Json;
