// What a run's turns have said, told by its events. What a turn said that was cut off and asked again is left out.
import type { Delta, Gap } from "./delta.ts";
import type { Event } from "./event.ts";
import { isCutOff } from "./transcript.ts";

export async function runText(events: AsyncIterable<Event | Delta | Gap>): Promise<string> {
  const said = new Map<string, string>();
  let cut: string | undefined;
  for await (const event of events) {
    if (event.type === "turn.extended") said.set(event.turnId, (said.get(event.turnId) ?? "") + event.text);
    if (event.type === "turn.settled") {
      said.set(event.turnId, event.text ?? said.get(event.turnId) ?? "");
      cut = isCutOff(event.outcome) ? event.turnId : undefined;
    }
    // A turn that had ended before is not asked again: what was cut off are the calls it has asked for.
    if (event.type === "run.recovered" && cut !== undefined) said.delete(cut);
  }
  return [...said.values()].join("");
}
