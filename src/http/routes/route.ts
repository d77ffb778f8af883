// The type of a route: its method, path, scope, and the schemas of its input and replies.
import type { z } from "zod";
import type { Json } from "../../core/model/prompt.ts";
import type { InputType } from "../schemas/schema-type-check.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** The scope that a token must have. `public`: no token is needed. */
export type RouteScope = "read" | "prompt" | "cancel" | "approve" | "admin" | "public";

/** The parameters of paths. Each except `key` and `name` must be an id of its kind. */
export type ParamName = "session" | "run" | "call" | "process" | "question" | "key" | "name";

/** A reply: JSON with a schema, another text, an event stream, or nothing. */
export type RouteAnswer =
  | { readonly kind: "json"; readonly schema: z.ZodType }
  | { readonly kind: "text"; readonly type: string }
  | { readonly kind: "events"; readonly events: readonly z.ZodType[] }
  | { readonly kind: "empty" };

export interface Route {
  readonly method: Method;
  /** With parameters in braces, such as `{session}`. */
  readonly path: `/${string}`;
  readonly scope: RouteScope;
  /** One sentence for the documentation. */
  readonly summary: string;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType;
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** It stops something, so it is exempt from the rate limit. */
  readonly stop?: true;
  /** It carries requests that are admitted, counted and audited separately, so it is exempt itself. */
  readonly carrier?: true;
  /** It concerns the whole server, not one tenant. */
  readonly serverWide?: true;
  /** For mutations: the name of the action and the parameter with its target, for the audit trail. */
  readonly audit?: { readonly action: string; readonly target?: ParamName };
  /** `no`: it is not idempotent and accepts no key. */
  readonly keyed?: "no";
}

/** Every method but GET is a mutation. */
export const isMutation = (route: Pick<Route, "method">): boolean => route.method !== "GET";

/** The names of the parameters in a path, in order. */
export const paramsOf = (path: string): readonly string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);

type ParamsIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParamsIn<Rest>
  : never;

/** A validated value: optional fields are never undefined, and everything is readonly. */
type Checked<T> = [Json] extends [T]
  ? T
  : T extends readonly (infer Item)[]
    ? readonly Checked<Item>[]
    : T extends object
      ? { readonly [K in keyof T]: Checked<Exclude<T[K], undefined>> }
      : T;

/** The validated path parameters, query and body of a route. */
export type ParamsOf<R extends Route> = { readonly [Name in ParamsIn<R["path"]>]: string };
export type QueryOf<R extends Route> = R extends { readonly query: infer Q extends z.ZodType }
  ? Checked<z.output<Q>>
  : object;
export type BodyOf<R extends Route> = R extends { readonly body: infer B extends z.ZodType }
  ? Checked<z.output<B>>
  : undefined;

/** The input type of a JSON reply. */
export type BodyGiven<A extends RouteAnswer> = A extends { readonly schema: infer S extends z.ZodType }
  ? InputType<z.output<S>>
  : never;

export const json = <S extends z.ZodType>(schema: S) => ({ kind: "json", schema }) as const;
export const text = (type: string) => ({ kind: "text", type }) as const;
export const events = (...of: readonly z.ZodType[]) => ({ kind: "events", events: of }) as const;
export const EMPTY = { kind: "empty" } as const;
