// A valid request for every route of the table, so that a request is refused only for the tested reason.

import type { Json } from "../../src/core/model/prompt.ts";
import { isMutation, type Route } from "../../src/http/routes/route.ts";
import { COMPONENTS } from "../../src/http/schemas/components.ts";
import { EXAMPLES } from "../../src/http/schemas/examples.ts";

/** Bodies without an example in the OpenAPI document. */
const BODIES: Readonly<Record<string, Json>> = {
  Item: { kind: "reminder", text: "tea" },
  TrimBody: { before: 1 },
  InputBody: { data: "yes\n" },
  StreamMessages: { stream: "req_x.1", messages: [] },
  ResizeBody: { columns: 80, rows: 24 },
};

export type Ids = Readonly<Record<"session" | "run" | "call" | "process" | "question" | "key" | "name", string>>;

/** Ids of objects of a tenant, or without a tenant. */
export function idsOf(tenant: string | undefined): Ids {
  const prefix = tenant === undefined ? "" : `${tenant}.`;
  return {
    session: `ses_${prefix}a`,
    run: "run_a",
    call: "call_a.1",
    process: `proc_${prefix}a.1`,
    question: "ask_a.1",
    key: "a key",
    name: "toolu_1",
  };
}

/** Queries without which a request is refused. */
const QUERIES: Readonly<Record<string, string>> = { "/v1/ids": "?prefix=ses_", "/v1/outcomes": "?runs=run_a" };

export const pathOf = (route: Route, ids: Ids): string =>
  route.path.replaceAll(/\{(\w+)\}/g, (_, name: keyof Ids) => encodeURIComponent(ids[name])) +
  (QUERIES[route.path] ?? "");

/** The body of a valid request, or undefined if it has none. */
export function bodyOf(route: Route): string | undefined {
  if (!isMutation(route) || route.body === undefined) return undefined;
  const name = Object.entries(COMPONENTS).find(([, schema]) => schema === route.body)?.[0] ?? "";
  const body = BODIES[name] ?? (route.body.safeParse({}).success ? {} : EXAMPLES[name]);
  if (body === undefined) throw new Error(`${route.path} needs a sample body: ${name}`);
  return JSON.stringify(body);
}
