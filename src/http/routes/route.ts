// One route of the API: where it is, who may take it, what goes in and what comes out.
import type { z } from "zod";
import type { Json } from "../../core/model/prompt.ts";
import type { InputType } from "../schemas/schema-type-check.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** What a token must be allowed to do. `public`: nothing, and no token is needed. */
export type RouteScope = "read" | "prompt" | "cancel" | "approve" | "admin" | "public";

/** What stands in a path in braces. Each but `key` and `name` is checked for its kind. */
export type ParamName = "session" | "run" | "call" | "process" | "question" | "key" | "name";

/** An answer is JSON by a schema, a text of another kind, a stream of events, or nothing. */
export type RouteAnswer =
  | { readonly kind: "json"; readonly schema: z.ZodType }
  | { readonly kind: "text"; readonly type: string }
  | { readonly kind: "events"; readonly events: readonly z.ZodType[] }
  | { readonly kind: "empty" };

export interface Route {
  readonly method: Method;
  /** With `{session}` and the like in place of ids. */
  readonly path: `/${string}`;
  readonly scope: RouteScope;
  /** One sentence for people. */
  readonly summary: string;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** It brings something to an end: never refused because somebody was too fast. */
  readonly stop?: true;
  /** It carries requests that are admitted, counted and recorded one by one, so it is none of that itself. */
  readonly carrier?: true;
  /** It concerns the whole server, not one tenant. */
  readonly serverWide?: true;
  /** For whatever changes something: how the audit trail names it, and what it was done to. */
  readonly audit?: { readonly action: string; readonly target?: ParamName };
  /** `no`: doing it twice is not the same as once, and no key can make it so. */
  readonly keyed?: "no";
}

/** Everything but reading changes something. */
export const isMutation = (route: Pick<Route, "method">): boolean => route.method !== "GET";

/** The names in braces, in order. */
export const paramsOf = (path: string): readonly string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);

type ParamsIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamsIn<Rest>
  : never;

/** What was checked: an optional field is there or it is not, and nothing in it will be changed. */
type Checked<T> = [Json] extends [T]
  ? T
  : T extends readonly (infer Item)[]
    ? readonly Checked<Item>[]
    : T extends object
      ? { readonly [K in keyof T]: Checked<Exclude<T[K], undefined>> }
      : T;

/** What a route's path, query and body are once they have been checked. */
export type ParamsOf<R extends Route> = { readonly [Name in ParamsIn<R["path"]>]: string };
export type QueryOf<R extends Route> = R extends { readonly query: infer Q extends z.ZodType }
  ? Checked<z.output<Q>>
  : object;
export type BodyOf<R extends Route> = R extends { readonly body: infer B extends z.ZodType }
  ? Checked<z.output<B>>
  : undefined;

/** A value as it may be given for an answer in JSON. */
export type BodyGiven<A extends RouteAnswer> = A extends { readonly schema: infer S extends z.ZodType }
  ? InputType<z.output<S>>
  : never;

export const json = <S extends z.ZodType>(schema: S) => ({ kind: "json", schema }) as const;
export const text = (type: string) => ({ kind: "text", type }) as const;
export const events = (...of: readonly z.ZodType[]) => ({ kind: "events", events: of }) as const;
export const EMPTY = { kind: "empty" } as const;
