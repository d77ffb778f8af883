// The table of all routes. The server answers exactly these, and the OpenAPI document describes exactly these.

import type { Route } from "./route.ts";
import { RUN_ROUTES } from "./run-routes.ts";
import { SERVER_ROUTES } from "./server-routes.ts";
import { SESSION_ROUTES } from "./session-routes.ts";

export const ROUTES = { ...SERVER_ROUTES, ...SESSION_ROUTES, ...RUN_ROUTES } as const;

export type Routes = typeof ROUTES;
export type RouteName = keyof Routes;

const isRouteName = (name: string): name is RouteName => Object.hasOwn(ROUTES, name);

export const ROUTE_NAMES: readonly RouteName[] = Object.keys(ROUTES).filter(isRouteName);

export const routeOf = (name: RouteName): Route => ROUTES[name];
