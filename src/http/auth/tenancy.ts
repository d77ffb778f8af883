// Whose is what an id names. A tenant reaches its own; what is another's is not there for it.
//
// Invariants
// 1. Nothing is asked of a session that is not the asker's.
// 2. Where the path names a session, nothing is awaited: prompts are registered in the order in which they arrive.

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

/** An id that cannot be one of what stands there is one that is not there. */
export function checkKinds(params: Params): void {
  for (const [name, id] of Object.entries(params)) if (isKind(name) && !KINDS[name](id)) throw absent(name, id);
}

/** Whether what the path names is the actor's to see. Not a promise where the path itself tells. */
export function isOwn(control: BelayControl, actor: Actor, params: Params): boolean | Promise<boolean> {
  const { tenant } = actor;
  if (tenant === undefined) return true;
  const { session, process } = params;
  // Their kinds were checked before.
  const own = session ?? process;
  if (own !== undefined) return tenantOf(own as SessionId | ProcessId) === tenant;
  const id = params.run ?? params.call ?? params.question;
  return id === undefined ? true : isAtHome(control, tenant, id);
}

/** What is nobody's is asked for like one's own: its receipt says that there is none. */
async function isAtHome(control: BelayControl, tenant: string, id: string): Promise<boolean> {
  const home = await control.findSession(id);
  return home === undefined || tenantOf(home) === tenant;
}

/** What is said of something that is not the asker's: that it is not there. */
export function missing(params: Params): ControlError {
  const [[name, id] = ["thing", ""]] = Object.entries(params);
  return absent(name, id);
}

/** In the very words the library uses. */
export const absent = (kind: string, id: string): ControlError =>
  new ControlError("not_found", `There is no ${kind} ${id.slice(0, KEY_CHARS_MAX).toWellFormed()}.`);
