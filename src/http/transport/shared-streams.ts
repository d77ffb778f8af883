// The shared streams that are open, by their ids: to an event stream, a client sends its messages in separate requests.

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

  /** Its frames; it can be found as long as they are read. */
  async *frames(stream: SharedStream, signal: AbortSignal): AsyncGenerator<string, "cut"> {
    this.#open.set(stream.id, stream);
    try {
      return yield* stream.frames(signal);
    } finally {
      this.#open.delete(stream.id);
    }
  }

  /** Another actor's is not there. */
  find(id: string, { name, tenant }: Actor): SharedStream {
    const found = this.#open.get(id);
    if (found !== undefined && found.actor.name === name && found.actor.tenant === tenant) return found;
    throw new ControlError("not_found", "There is no stream of this name.", { hint: "Open another: GET /v1/stream." });
  }
}

function kindOf(method: string, path: string): "follows" | "stops" | undefined {
  const match = matchRoute(method, path);
  if (match.kind !== "found" || match.route.carrier === true) return undefined;
  // To delete a session stops everything in it, with another scope than other stops.
  if (match.route.stop === true || match.name === "deleteSession") return "stops";
  return !isMutation(match.route) && takesTime(match.route) ? "follows" : undefined;
}

const takesTime = ({ answers, query }: Route): boolean =>
  Object.values(answers).some(({ kind }) => kind === "events") || Object.hasOwn(query?.shape ?? {}, "waitMs");
