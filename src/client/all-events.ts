// What is recorded in any session of a server, for whoever watches a whole house.

import { ControlError } from "../core/errors.ts";
import type { AllEventsOptions, AllSessionsEvent } from "../ports/control.ts";
import type { SseMessage } from "../wire/sse-parser.ts";
import type { Connection } from "./transport/connection.ts";
import { Stream } from "./transport/stream.ts";

/** Everything after a cursor, or from now on, until the loop is left. Where it begins is said once. */
export async function* allEvents(
  connection: Connection,
  { after, signal }: Pick<AllEventsOptions, "after" | "signal">,
): AsyncGenerator<AllSessionsEvent, void> {
  const stream = new Stream(connection, { path: "/v1/events", query: { after }, signal });
  for await (const messages of stream.pages()) {
    for (const message of messages) {
      const told = decode(message, connection.where);
      const again = stream.connections > 1;
      const blind = again && stream.cursor === undefined && after === undefined;
      stream.cursor = told.cursor;
      // Cut off before it had said where it is: what happened in between cannot be asked for.
      if (blind && told.type !== "missed") yield { type: "missed", cursor: told.cursor };
      if (told.type === "here" && again) continue;
      yield told;
    }
  }
}

function decode({ event, data, lastEventId }: SseMessage, where: string): AllSessionsEvent {
  try {
    // The edge: an event is what the API says it is.
    const told = JSON.parse(data) as Omit<Extract<AllSessionsEvent, { type: "event" }>, "type">;
    const cursor = told.cursor ?? lastEventId;
    if (event === "missed" || event === "here") return { type: event, cursor };
    return { type: "event", cursor, sessionId: told.sessionId, event: told.event };
  } catch (cause) {
    throw new ControlError("internal", `${where} sent an event that is none.`, { cause });
  }
}
