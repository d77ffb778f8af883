// The identity of a client and its permissions.
import { ControlError } from "../../../core/errors.ts";
import { isSessionId, type SessionId, tenantOf } from "../../../core/model/ids.ts";
import { unknownSession } from "./rpc-error.ts";

export type Scope = "read" | "prompt" | "cancel" | "approve" | "admin";

export interface AcpClientInfo {
  readonly name: string;
  /** The tenant of its sessions; the client sees no others. */
  readonly tenant?: string | undefined;
  readonly may: ReadonlySet<Scope>;
}

/** The local user, who started this process. */
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

/** Checks that an id names a session that this client may see. Otherwise it is reported as not found. */
export function sessionOf({ tenant }: AcpClientInfo, id: string): SessionId {
  if (!isSessionId(id) || !isOwn({ tenant }, id)) throw unknownSession(id);
  return id;
}

export const isOwn = ({ tenant }: Pick<AcpClientInfo, "tenant">, id: SessionId): boolean =>
  tenant === undefined || tenantOf(id) === tenant;
