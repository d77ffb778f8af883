// Finds the route of a method and a path.
//
// Invariants
// 1. A path is split before it is decoded: an encoded slash is part of a name and never a separator.
import { isMutation, type Route } from "./route.ts";
import { ROUTE_NAMES, type RouteName, routeOf } from "./routes.ts";

export type Match =
  | {
      readonly kind: "found";
      readonly name: RouteName;
      readonly route: Route;
      readonly params: Readonly<Record<string, string>>;
    }
  /** The path exists, but not with this method. */
  | { readonly kind: "method"; readonly allow: string }
  | { readonly kind: "none" };

interface RouteEntry {
  readonly name: RouteName;
  readonly route: Route;
  readonly segments: readonly string[];
}

/** No path of the table has more segments. Longer paths are not searched. */
const SEGMENTS_MAX = 8;

const BY_LENGTH: ReadonlyMap<number, readonly RouteEntry[]> = Map.groupBy(
  ROUTE_NAMES.map(
    (name): RouteEntry => ({ name, route: routeOf(name), segments: routeOf(name).path.split("/").slice(1) }),
  ),
  ({ segments }) => segments.length,
);

export function matchRoute(method: string, path: string): Match {
  const segments = path.split("/", SEGMENTS_MAX + 2).slice(1);
  const entries = (BY_LENGTH.get(segments.length) ?? []).filter((entry) => matches(entry.segments, segments));
  if (entries.length === 0) return { kind: "none" };
  const routeMethod = method === "HEAD" ? "GET" : method;
  const entry = entries.find(({ route }) => route.method === routeMethod);
  if (entry === undefined) return { kind: "method", allow: allowedMethods(entries) };
  const params = paramsIn(entry.segments, segments);
  return params === undefined ? { kind: "none" } : { kind: "found", name: entry.name, route: entry.route, params };
}

const isParam = (segment: string): boolean => segment.startsWith("{");

function matches(template: readonly string[], segments: readonly string[]): boolean {
  return template.every((part, index) => (isParam(part) ? segments[index] !== "" : part === segments[index]));
}

/** Undefined if a segment is not valid percent-encoded UTF-8. */
function paramsIn(
  template: readonly string[],
  segments: readonly string[],
): Readonly<Record<string, string>> | undefined {
  const params: Record<string, string> = {};
  for (const [index, part] of template.entries()) {
    if (!isParam(part)) continue;
    const decoded = textOf(segments[index] ?? "");
    if (decoded === undefined) return undefined;
    params[part.slice(1, -1)] = decoded;
  }
  return params;
}

function textOf(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function allowedMethods(entries: readonly RouteEntry[]): string {
  const methods = entries.map(({ route }) => route.method);
  const reading = entries.some(({ route }) => !isMutation(route)) ? ["HEAD"] : [];
  return [...methods, ...reading, "OPTIONS"].join(", ");
}
