// What a run's turns have said, told by its events. What a turn said that was cut off and asked again is left out.
import { ControlError } from "./control-error.ts";
import type { Delta, Gap } from "./delta.ts";
import type { Event } from "./event.ts";
import { isCutOff } from "./transcript.ts";

/** Rejects as `not_found` if the events of the run were removed: an empty text would say that it has said nothing. */
export async function runText(events: AsyncIterable<Event | Delta | Gap>): Promise<string> {
  const said = new Map<string, string>();
  let cut: string | undefined;
  let removed: "some" | "all" | undefined;
  for await (const event of events) {
    if (event.type === "gap") removed = "all";
    else if (removed === "all") removed = "some";
    if (event.type === "turn.extended") said.set(event.turnId, (said.get(event.turnId) ?? "") + event.text);
    if (event.type === "turn.settled") {
      said.set(event.turnId, event.text ?? said.get(event.turnId) ?? "");
      cut = isCutOff(event.outcome) ? event.turnId : undefined;
    }
    // A turn that had ended before is not asked again: what was cut off are the calls it has asked for.
    if (event.type === "run.recovered" && cut !== undefined) said.delete(cut);
  }
  if (removed === "all") {
    throw new ControlError("not_found", "The events of this run were removed by a trim or by retention.", {
      hint: "Its outcome is still known. Keep more with `retention`, or read the text when the run ends.",
    });
  }
  return [...said.values()].join("");
}
