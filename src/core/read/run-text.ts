// The text of a run, read from its events: that of its last turn, or of all turns. A turn that was cut off and
// requested again is omitted.
import { ControlError } from "../errors.ts";
import type { Delta, Gap } from "../model/delta.ts";
import type { Event } from "../model/event.ts";
import { isCutOff } from "./transcript.ts";

export interface TextOptions {
  /** The texts of all turns, separated by blank lines. Default: the text of the last turn. */
  readonly all?: boolean;
}

/** Rejects as `not_found` if the run's events were removed, because an empty text would look like an empty answer. */
export async function runText(
  events: AsyncIterable<Event | Delta | Gap>,
  { all = false }: TextOptions = {},
): Promise<string> {
  const texts = new Map<string, string>();
  let cut: string | undefined;
  let removed: "some" | "all" | undefined;
  for await (const event of events) {
    if (event.type === "gap") removed = "all";
    else if (removed === "all") removed = "some";
    if (event.type === "turn.requested") texts.set(event.turnId, "");
    if (event.type === "turn.extended") texts.set(event.turnId, (texts.get(event.turnId) ?? "") + event.text);
    if (event.type === "turn.settled") {
      texts.set(event.turnId, event.text ?? texts.get(event.turnId) ?? "");
      cut = isCutOff(event.outcome) ? event.turnId : undefined;
    }
    // A turn that had settled is not requested again: what was cut off are the calls that it requested.
    if (event.type === "run.recovered" && cut !== undefined) texts.delete(cut);
  }
  if (removed === "all") throw eventsRemoved();
  const inOrder = [...texts.values()];
  return all ? inOrder.filter((text) => text !== "").join("\n\n") : (inOrder.at(-1) ?? "");
}

export const eventsRemoved = (): ControlError =>
  new ControlError("not_found", "The events of this run were removed by a trim or by retention.", {
    hint: "Its outcome is still known. Keep more with `retention`, or read the text when the run ends.",
  });
