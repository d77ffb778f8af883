// The work every side does: what is asked, what the tool says, and what the answer must be.
import type { Kind } from "./side.ts";

export const PROMPT = "What is the weather in Lisbon today, in one sentence?";

export const TOOL_NAME = "weather";
export const TOOL_DESCRIPTION = "The weather of a city, now.";
export const TOOL_INPUT = { city: "Lisbon" } as const;
/** `TOOL_INPUT` as models send it. */
export const TOOL_INPUT_JSON: string = JSON.stringify(TOOL_INPUT);

/** The model quotes the tool, so a right answer shows that the result came back to it. */
export const quoting = (toolResult: string): string => `The tool says: ${toolResult}`;

/** What the deltas of a run, joined, must be. */
export const ANSWERS: Readonly<Record<Kind, string>> = {
  text: "It is sunny in Lisbon today, with a light wind from the sea.",
  tool: quoting(`21 degrees and sunny in ${TOOL_INPUT.city}`),
};

let calls = 0;

/** The tool. It does next to nothing: what is measured is the road to it and back. */
export async function weather(input: { readonly city: string }): Promise<string> {
  calls += 1;
  return `21 degrees and sunny in ${input.city}`;
}

/** How often this process has called the tool: a right answer is not enough if the work was skipped. */
export const toolCalls = (): number => calls;
