// What a run has answered, read from its events: the text of its last turn, or that of all its turns. A turn that was
// cut off and asked again is left out.
import { ControlError } from "../errors.ts";
import type { Delta, Gap } from "../model/delta.ts";
import type { Event } from "../model/event.ts";
import { isCutOff } from "./transcript.ts";

export interface TextOptions {
  /** The texts of all turns, with a blank line between them. Default: the text of the last turn. */
  readonly all?: boolean;
}

/** Rejects as `not_found` if the events of the run were removed: an empty text would say that it has said nothing. */
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
    // A turn that had ended before is not asked again: what was cut off are the calls it has asked for.
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
