// Which route a method and a path name.
//
// Invariants
// 1. A path is split before it is decoded: an encoded slash is part of a name, never a way elsewhere.
import { isMutation, type Route } from "./route.ts";
import { ROUTE_NAMES, type RouteName, routeOf } from "./routes.ts";

export type Match =
  | {
      readonly kind: "found";
      readonly name: RouteName;
      readonly route: Route;
      readonly params: Readonly<Record<string, string>>;
    }
  /** There is something at this path, but not for this method. */
  | { readonly kind: "method"; readonly allow: string }
  | { readonly kind: "none" };

interface RouteEntry {
  readonly name: RouteName;
  readonly route: Route;
  readonly segments: readonly string[];
}

/** Paths of the table have at most this many segments: a longer one is not looked at. */
const SEGMENTS_MAX = 8;

const BY_LENGTH: ReadonlyMap<number, readonly RouteEntry[]> = Map.groupBy(
  ROUTE_NAMES.map(
    (name): RouteEntry => ({ name, route: routeOf(name), segments: routeOf(name).path.split("/").slice(1) }),
  ),
  ({ segments }) => segments.length,
);

export function matchRoute(method: string, path: string): Match {
  const segments = path.split("/", SEGMENTS_MAX + 2).slice(1);
  const there = (BY_LENGTH.get(segments.length) ?? []).filter((entry) => fits(entry.segments, segments));
  if (there.length === 0) return { kind: "none" };
  const wanted = method === "HEAD" ? "GET" : method;
  const entry = there.find(({ route }) => route.method === wanted);
  if (entry === undefined) return { kind: "method", allow: allowed(there) };
  const params = paramsIn(entry.segments, segments);
  return params === undefined ? { kind: "none" } : { kind: "found", name: entry.name, route: entry.route, params };
}

const isParam = (segment: string): boolean => segment.startsWith("{");

function fits(template: readonly string[], segments: readonly string[]): boolean {
  return template.every((part, index) => (isParam(part) ? segments[index] !== "" : part === segments[index]));
}

/** Undefined: what was encoded is no text. */
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

function allowed(there: readonly RouteEntry[]): string {
  const methods = there.map(({ route }) => route.method);
  const reading = there.some(({ route }) => !isMutation(route)) ? ["HEAD"] : [];
  return [...methods, ...reading, "OPTIONS"].join(", ");
}
