// Tenant isolation: a tenant's token reaches the tenant's own sessions. Everything else is reported as not found.
//
// Invariants
// 1. No request reaches a session of another tenant.
// 2. If the path contains a session id, the check is synchronous: prompts are registered in order of arrival.

import { ControlError } from "../../core/errors.ts";
import { KEY_CHARS_MAX } from "../../core/limits.ts";
import {
  isCallId,
  isProcessId,
  isQuestionId,
  isRunId,
  isSessionId,
  type ProcessId,
  type SessionId,
  tenantOf,
} from "../../core/model/ids.ts";
import type { BelayControl } from "../../ports/control.ts";
import type { ParamName } from "../routes/route.ts";
import type { Actor } from "../transport/http-exchange.ts";

type Params = Readonly<Record<string, string>>;

const isText = (key: string): boolean => key.length <= KEY_CHARS_MAX && key.isWellFormed();

const KINDS: Readonly<Record<ParamName, (id: string) => boolean>> = {
  session: isSessionId,
  run: isRunId,
  call: isCallId,
  process: isProcessId,
  question: isQuestionId,
  key: isText,
  name: isText,
};

const isKind = (name: string): name is ParamName => Object.hasOwn(KINDS, name);

/** Reports a malformed id as not found. */
export function checkKinds(params: Params): void {
  for (const [name, id] of Object.entries(params)) if (isKind(name) && !KINDS[name](id)) throw notFound(name, id);
}

/** Whether the actor may access the object in the path. Synchronous if the id contains the tenant. */
export function isOwn(control: BelayControl, actor: Actor, params: Params): boolean | Promise<boolean> {
  const { tenant } = actor;
  if (tenant === undefined) return true;
  const { session, process } = params;
  // `checkKinds` has checked both.
  const own = session ?? process;
  if (own !== undefined) return tenantOf(own as SessionId | ProcessId) === tenant;
  const id = params.run ?? params.call ?? params.question;
  return id === undefined ? true : isInTenant(control, tenant, id);
}

/** True for an unknown id, too: the control itself then reports that it does not exist. */
async function isInTenant(control: BelayControl, tenant: string, id: string): Promise<boolean> {
  const session = await control.findSession(id);
  return session === undefined || tenantOf(session) === tenant;
}

/** The error for an object of another tenant: the same as for one that does not exist. */
export function notFoundIn(params: Params): ControlError {
  const [[name, id] = ["thing", ""]] = Object.entries(params);
  return notFound(name, id);
}

/** Has the same message as the library's error. */
export const notFound = (kind: string, id: string): ControlError =>
  new ControlError("not_found", `There is no ${kind} ${id.slice(0, KEY_CHARS_MAX).toWellFormed()}.`);
