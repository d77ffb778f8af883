// Who is at the other end of a connection, and what they may do.
import { ControlError } from "../../../core/errors.ts";
import { isSessionId, type SessionId, tenantOf } from "../../../core/model/ids.ts";
import { unknownSession } from "./rpc-error.ts";

export type Scope = "read" | "prompt" | "cancel" | "approve" | "admin";

export interface AcpClientInfo {
  readonly name: string;
  /** Sessions are made in it, and no other is there. */
  readonly tenant?: string | undefined;
  readonly may: ReadonlySet<Scope>;
}

/** The user of this machine, who has started us. */
export const LOCAL_USER: AcpClientInfo = {
  name: "editor",
  may: new Set(["read", "prompt", "cancel", "approve", "admin"]),
};

export const isAllowed = ({ may }: AcpClientInfo, scope: Scope): boolean => may.has(scope) || may.has("admin");

export function allow(client: AcpClientInfo, scope: Scope): void {
  if (isAllowed(client, scope)) return;
  throw new ControlError("forbidden", `This token may not ${VERBS[scope]}.`);
}

const VERBS: Readonly<Record<Scope, string>> = {
  read: "look at sessions",
  prompt: "send prompts",
  cancel: "stop anything",
  approve: "answer questions",
  admin: "do that",
};

/** An id as a session of this guest. What is another's is not there. */
export function sessionOf({ tenant }: AcpClientInfo, id: string): SessionId {
  if (!isSessionId(id) || !isOwn({ tenant }, id)) throw unknownSession(id);
  return id;
}

export const isOwn = ({ tenant }: Pick<AcpClientInfo, "tenant">, id: SessionId): boolean =>
  tenant === undefined || tenantOf(id) === tenant;
