// The open shared streams by id. The client of an event stream sends its messages in separate requests.

import { ControlError } from "../../core/errors.ts";
import { isMutation, type Route } from "../routes/route.ts";
import { matchRoute } from "../routes/route-match.ts";
import type { Actor, HttpAnswer, HttpRequest } from "./http-exchange.ts";
import { SharedStream } from "./shared-stream.ts";

export class SharedStreams {
  readonly #handle: (request: HttpRequest) => Promise<HttpAnswer>;
  readonly #open = new Map<string, SharedStream>();

  constructor(handle: (request: HttpRequest) => Promise<HttpAnswer>) {
    this.#handle = handle;
  }

  make(actor: Actor, carrier: HttpRequest): SharedStream {
    return new SharedStream({ id: carrier.id, actor, carrier, handle: this.#handle, kindOf });
  }

  /** The frames of a stream. It can be found while they are read. */
  async *frames(stream: SharedStream, signal: AbortSignal): AsyncGenerator<string, "cut"> {
    this.#open.set(stream.id, stream);
    try {
      return yield* stream.frames(signal);
    } finally {
      this.#open.delete(stream.id);
    }
  }

  /** Finds a stream. One of another actor is reported as not found. */
  find(id: string, { name, tenant }: Actor): SharedStream {
    const found = this.#open.get(id);
    if (found !== undefined && found.actor.name === name && found.actor.tenant === tenant) return found;
    throw new ControlError("not_found", "There is no such stream.", { hint: "Open another one: GET /v1/stream." });
  }
}

function kindOf(method: string, path: string): "follows" | "stops" | undefined {
  const match = matchRoute(method, path);
  if (match.kind !== "found" || match.route.carrier === true) return undefined;
  // Deleting a session stops everything in it, but needs another scope than other stops.
  if (match.route.stop === true || match.name === "deleteSession") return "stops";
  return !isMutation(match.route) && isLong(match.route) ? "follows" : undefined;
}

const isLong = ({ answers, query }: Route): boolean =>
  Object.values(answers).some(({ kind }) => kind === "events") || Object.hasOwn(query?.shape ?? {}, "waitMs");
