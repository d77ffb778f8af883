import { expect, test } from "vitest";
import { openApi, openApiText } from "./openapi.ts";
import { isMutation, paramsOf } from "./routes/route.ts";
import { ROUTE_NAMES, routeOf } from "./routes/routes.ts";
import { COMPONENTS } from "./schemas/components.ts";
import { EXAMPLES } from "./schemas/examples.ts";

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly responses: Readonly<Record<string, unknown>>;
  readonly security?: readonly unknown[];
}

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

const document: Document = JSON.parse(openApiText("1.2.3"));
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);

/** All objects in the document, with their paths. */
function* parts(value: unknown, at = "#"): Generator<{ readonly at: string; readonly value: object }> {
  if (typeof value !== "object" || value === null) return;
  yield { at, value };
  for (const [key, inner] of Object.entries(value))
    yield* parts(inner, `${at}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`);
}

function resolve(ref: string): unknown {
  const keys = ref
    .split("/")
    .slice(1)
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  return keys.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], document);
}

test("the document has exactly the routes of the table, each once", () => {
  expect(operations.map(({ operation }) => operation.operationId).toSorted()).toEqual(ROUTE_NAMES.toSorted());
  expect(operations.map(({ path, method }) => `${method} ${path}`).toSorted()).toEqual(
    ROUTE_NAMES.map((name) => `${routeOf(name).method.toLowerCase()} ${routeOf(name).path}`).toSorted(),
  );
});

test("every reference can be resolved", () => {
  const refs = [...parts(document)].flatMap(({ at, value }) =>
    "$ref" in value ? [{ at, ref: String(value.$ref) }] : [],
  );
  expect(refs.filter(({ ref }) => resolve(ref) === undefined)).toEqual([]);
  expect(refs.length).toBeGreaterThan(100);
});

test("every parameter of a path is declared once, and no others are", () => {
  for (const { path, operation } of operations) {
    const declared = operation.parameters.filter((one) => one.in === "path");
    expect(declared.map(({ name }) => name)).toEqual(paramsOf(path));
    expect(declared.every(({ required }) => required)).toBe(true);
    const names = operation.parameters.map((one) => `${one.in} ${one.name}`);
    expect(new Set(names).size).toBe(names.length);
  }
});

test("every operation declares its errors and whether it needs a token", () => {
  for (const { operation } of operations) {
    expect(Object.keys(operation.responses)).toContain("default");
    const isPublic = ROUTE_NAMES.some((name) => name === operation.operationId && routeOf(name).scope === "public");
    expect(operation.security).toEqual(isPublic ? [] : undefined);
  }
});

test.each(Object.entries(EXAMPLES))("the example of %s is valid", (name, example) => {
  const schema = COMPONENTS[name];
  expect(schema?.parse(example)).toEqual(example);
});

test("only opaque JSON has an empty schema", () => {
  const anything = [...parts(document.components.schemas, "#/components/schemas")].filter(
    // `{}` under `not` allows nothing, and in `properties` there are none.
    ({ at, value }) =>
      Object.keys(value).length === 0 && !/\/(not|properties|required)$/.test(at) && !Array.isArray(value),
  );
  expect(anything.map(({ at }) => at)).toEqual(["#/components/schemas/Json"]);
});

test("no schema inside the document has `$schema` or `$id`", () => {
  const own = [...parts(document)].filter(({ value }) => "$schema" in value || "$id" in value);
  expect(own.map(({ at }) => at)).toEqual([]);
});

test("the same table makes the same bytes", () => {
  expect(openApiText("1.2.3")).toBe(openApiText("1.2.3"));
  expect(JSON.stringify(openApi("1.2.3"))).toBe(JSON.stringify(document));
});

test("every mutation has an action for the audit trail, and every path has one route per method", () => {
  const unnamed = ROUTE_NAMES.filter((name) => isMutation(routeOf(name)) && routeOf(name).audit === undefined);
  expect(unnamed).toEqual([]);
  const shapes = ROUTE_NAMES.map(
    (name) => `${routeOf(name).method} ${routeOf(name).path.replaceAll(/\{\w+\}/g, "{}")}`,
  );
  expect(new Set(shapes).size).toBe(shapes.length);
});

test("no GET has a body, and no mutation is public", () => {
  expect(ROUTE_NAMES.filter((name) => !isMutation(routeOf(name)) && routeOf(name).body !== undefined)).toEqual([]);
  expect(ROUTE_NAMES.filter((name) => isMutation(routeOf(name)) && routeOf(name).scope === "public")).toEqual([]);
});
