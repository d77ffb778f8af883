// What answers one route: a function from what was asked, checked and admitted, to one of the answers in the table.

import type { Actor, HttpRequest } from "../transport/http-exchange.ts";
import type { BodyGiven, BodyOf, ParamsOf, QueryOf, Route, RouteAnswer } from "./route.ts";
import type { RouteName, Routes } from "./routes.ts";

export interface RouteRequest<R extends Route> {
  readonly actor: Actor;
  readonly params: ParamsOf<R>;
  readonly query: QueryOf<R>;
  readonly body: BodyOf<R>;
  /** The caller's own name for this request. */
  readonly key: string | undefined;
  readonly request: HttpRequest;
}

/** Where the pieces of a stream come from. The signal aborts when nobody wants them any more. */
export type Source = (signal: AbortSignal) => EventBatches;

/** `complete`: there is nothing more to come, ever. `cut`: there is, but not from here. */
export type EventBatches = AsyncIterator<string, "complete" | "cut">;

/** An answer as a doing gives it. */
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

/** Only what the table says: one of the route's statuses, with the body that belongs to it. */
export type ReplyOf<R extends Route> = {
  [Status in keyof R["answers"] & number]: ReplyAs<Status, R["answers"][Status]>;
}[keyof R["answers"] & number];

export type RouteHandler<R extends Route> = (ask: RouteRequest<R>) => Promise<ReplyOf<R>>;

/** One for every route: a route without one does not compile. */
export type RouteHandlers<Names extends RouteName = RouteName> = {
  readonly [Name in Names]: RouteHandler<Routes[Name]>;
};

export const reply = <const Status extends number, Body>(status: Status, body: Body) =>
  ({ kind: "json", status, body }) as const;
