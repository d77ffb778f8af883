// The type of a route handler: a function from a validated and admitted request to one of the route's replies.

import type { Actor, HttpRequest } from "../transport/http-exchange.ts";
import type { BodyGiven, BodyOf, ParamsOf, QueryOf, Route, RouteAnswer } from "./route.ts";
import type { RouteName, Routes } from "./routes.ts";

export interface RouteRequest<R extends Route> {
  readonly actor: Actor;
  readonly params: ParamsOf<R>;
  readonly query: QueryOf<R>;
  readonly body: BodyOf<R>;
  /** The idempotency key. */
  readonly key: string | undefined;
  readonly request: HttpRequest;
}

/** Produces the pieces of a stream. The signal aborts when the reader has left. */
export type Source = (signal: AbortSignal) => EventBatches;

/** `complete`: there are no more events, ever. `cut`: there are more, but not on this stream. */
export type EventBatches = AsyncIterator<string, "complete" | "cut">;

/** The result of a handler. */
export type Reply =
  | { readonly kind: "json"; readonly status: number; readonly body: unknown }
  | { readonly kind: "text"; readonly status: number; readonly type: string; readonly text: string }
  | {
      readonly kind: "events";
      readonly status: number;
      readonly source: Source;
      readonly receive?: (text: string) => void;
    }
  | { readonly kind: "empty"; readonly status: number };

type ReplyAs<Status, Answer extends RouteAnswer> = Answer extends { readonly kind: "json" }
  ? { readonly kind: "json"; readonly status: Status; readonly body: BodyGiven<Answer> }
  : Extract<Reply, { kind: Answer["kind"] }> & { readonly status: Status };

/** The replies that the table allows: one of the route's statuses, with its body. */
export type ReplyOf<R extends Route> = {
  [Status in keyof R["answers"] & number]: ReplyAs<Status, R["answers"][Status]>;
}[keyof R["answers"] & number];

export type RouteHandler<R extends Route> = (request: RouteRequest<R>) => Promise<ReplyOf<R>>;

/** One handler for every route: a route without a handler does not compile. */
export type RouteHandlers<Names extends RouteName = RouteName> = {
  readonly [Name in Names]: RouteHandler<Routes[Name]>;
};

export const reply = <const Status extends number, Body>(status: Status, body: Body) =>
  ({ kind: "json", status, body }) as const;
