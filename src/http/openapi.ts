// The OpenAPI document, generated from the table of routes alone. The same table makes the same bytes.
import { z } from "zod";
import { Bug } from "../core/bug.ts";
import type { Json } from "../core/model/prompt.ts";
import { isMutation, type ParamName, paramsOf, type Route, type RouteAnswer } from "./routes/route.ts";
import { ROUTE_NAMES, routeOf } from "./routes/routes.ts";
import { COMPONENTS } from "./schemas/components.ts";
import { EXAMPLES } from "./schemas/examples.ts";

type Part = { readonly [key: string]: Json };

const NAMES: ReadonlyMap<z.ZodType, string> = new Map(
  Object.entries(COMPONENTS).map(([name, schema]) => [schema, name]),
);

const uri = (name: string): string => `#/components/schemas/${name}`;

/** The document as JSON text. */
export function openApiText(version: string): string {
  return `${JSON.stringify(openApi(version), null, 2)}\n`;
}

export function openApi(version: string): Part {
  return {
    openapi: "3.1.1",
    info: {
      title: "Belay",
      version,
      summary: SUMMARY,
      description: DESCRIPTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    // Relative to the URL of this document.
    servers: [{ url: "/" }],
    security: [{ token: [] }],
    tags: TAGS.map((name) => ({ name })),
    paths: paths(),
    components: {
      schemas: schemas(),
      responses: {
        Problem: { description: "The request was refused or failed.", headers: HEADERS, content: problemContent() },
      },
      securitySchemes: {
        token: { type: "http", scheme: "bearer", description: "`belay token` lists, adds and rotates tokens." },
      },
    },
  };
}

const SUMMARY = "The run-control plane for AI agents: the stop button that always works.";
const DESCRIPTION = [
  "Prompts go in, events come out, and anything can be stopped at any time.",
  "A receipt says what was recorded; an outcome says, exactly once, how something ended.",
  "Disconnecting cancels nothing. A repeated request with the same `Idempotency-Key` is executed once.",
  "The private socket of the server needs no token.",
].join("\n\n");

const TAGS = ["server", "sessions", "runs", "calls", "questions", "processes"] as const;

const HEADERS: Part = { "x-request-id": { description: "Names the request in logs.", schema: { type: "string" } } };

function paths(): Part {
  const found: Record<string, Record<string, Json>> = {};
  for (const name of ROUTE_NAMES) {
    const route = routeOf(name);
    found[route.path] = { ...found[route.path], [route.method.toLowerCase()]: operation(name, route) };
  }
  return found;
}

function operation(name: string, route: Route): Part {
  return {
    operationId: name,
    tags: [TAGS.find((tag) => route.path.startsWith(`/v1/${tag}/`)) ?? "server"],
    summary: route.summary,
    description: permission(route),
    ...(route.scope === "public" ? { security: [] } : {}),
    parameters: parameters(route),
    ...(route.body === undefined ? {} : { requestBody: requestBody(route, route.body) }),
    responses: responses(route),
  };
}

function permission({ scope, serverWide, stop }: Route): string {
  if (scope === "public") return "Needs no token.";
  const tenancy = serverWide === true ? " Only for tokens of the whole server." : "";
  const rate = stop === true ? " Exempt from the rate limit." : "";
  return `Needs the scope \`${scope}\`.${tenancy}${rate}`;
}

const PARAM_SCHEMAS: Readonly<Record<ParamName, string | undefined>> = {
  session: "SessionId",
  run: "RunId",
  call: "CallId",
  process: "ProcessId",
  question: "QuestionId",
  key: undefined,
  name: undefined,
};

const isParamName = (name: string): name is ParamName => Object.hasOwn(PARAM_SCHEMAS, name);

function parameters(route: Route): readonly Json[] {
  const inPath = paramsOf(route.path).map((name): Part => {
    const of = isParamName(name) ? PARAM_SCHEMAS[name] : undefined;
    const schema: Part = of === undefined ? { type: "string", minLength: 1 } : { $ref: uri(of) };
    return { name, in: "path", required: true, schema };
  });
  const inQuery = Object.entries(route.query?.shape ?? {}).map(([name, schema]): Part => {
    return { name, in: "query", required: false, schema: plain(z.toJSONSchema(schema, { io: "input" })) };
  });
  const inHeader: Part[] = [];
  if (isMutation(route) && route.keyed !== "no") inHeader.push(KEY_HEADER);
  if (Object.values(route.answers).some(({ kind }) => kind === "events")) inHeader.push(RESUME_HEADER);
  return [...inPath, ...inQuery, ...inHeader];
}

const KEY_HEADER: Part = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description: "The same request with the same key gets the same response; another request is a `conflict`.",
  schema: { type: "string", minLength: 1, maxLength: 256 },
};

const RESUME_HEADER: Part = {
  name: "Last-Event-ID",
  in: "header",
  required: false,
  description: "The `id` of the last event that was received. Overrides `after`.",
  schema: { type: "string" },
};

function requestBody(route: Route, schema: z.ZodType): Part {
  // An empty body counts as an empty object: if the schema accepts that, no body is required.
  return { required: !schema.safeParse({}).success && route.method !== "DELETE", content: jsonContent(schema) };
}

function responses(route: Route): Part {
  const given = Object.entries(route.answers).map(([status, answer]): readonly [string, Part] => [
    status,
    { description: described(status, answer), headers: HEADERS, ...content(answer) },
  ]);
  return { ...Object.fromEntries(given), default: { $ref: "#/components/responses/Problem" } };
}

function described(status: string, answer: RouteAnswer): string {
  if (answer.kind === "events")
    return `Server-sent events. Each \`data\` is one line of JSON: ${eventNames(answer.events)}.`;
  if (answer.kind === "empty") return "The stream is complete.";
  return DESCRIPTIONS[status] ?? "Done.";
}

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  200: "Done.",
  201: "Created.",
  202: "Accepted; the outcome comes later.",
  503: "Not ready.",
};

const eventNames = (events: readonly z.ZodType[]): string => events.map(nameOf).join(", ");

function content(answer: RouteAnswer): Part {
  switch (answer.kind) {
    case "json":
      return { content: jsonContent(answer.schema) };
    case "text":
      return {
        content: {
          [answer.type.split(";")[0] ?? answer.type]: {
            schema: { type: answer.type.includes("json") ? "object" : "string" },
          },
        },
      };
    case "events":
      return { content: { "text/event-stream": { schema: { type: "string" } } } };
    case "empty":
      return {};
  }
}

function jsonContent(schema: z.ZodType): Part {
  const name = nameOf(schema);
  const example = EXAMPLES[name];
  return { "application/json": { schema: { $ref: uri(name) }, ...(example === undefined ? {} : { example }) } };
}

const problemContent = (): Part => ({
  "application/json": { schema: { $ref: uri("Problem") }, example: EXAMPLES.Problem ?? null },
});

function nameOf(schema: z.ZodType): string {
  const name = NAMES.get(schema);
  if (name === undefined) throw new Bug("a route uses a schema without a name in components.ts");
  return name;
}

function schemas(): Part {
  const registry = z.registry<{ id: string }>();
  for (const [name, schema] of Object.entries(COMPONENTS)) registry.add(schema, { id: name });
  // Opaque JSON is the only schema that cannot be represented more exactly; a test checks that.
  const made = z.toJSONSchema(registry, { uri, io: "input", unrepresentable: "any" });
  const named = Object.entries(made.schemas).map(([name, schema]): readonly [string, Json] => [name, plain(schema)]);
  return Object.fromEntries(named.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}

/** Removes the keys that only a standalone document has. */
function plain({ $schema: _, $id: __, ...rest }: object & { $schema?: unknown; $id?: unknown }): Json {
  return JSON.parse(JSON.stringify(rest));
}
