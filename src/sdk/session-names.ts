// Names people give: of tenants, of sessions, of prompts.

import { invalid } from "../core/input.ts";
import { TITLE_CHARS_MAX } from "../core/limits.ts";
import { isSessionId, type SessionId, tenantPrefix } from "../core/model/ids.ts";
import type { Engine } from "../engine/engine.ts";

/** Short enough that everything named after a session of theirs is still an id. */
const TENANT = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** What the ids of a tenant's sessions begin with; without one, what all do. */
export function sessionPrefix(tenant: string | undefined): string {
  return tenant === undefined ? "ses_" : tenantPrefix(checkTenant(tenant));
}

export function checkTenant(tenant: string): string {
  if (typeof tenant !== "string" || !TENANT.test(tenant)) {
    throw invalid("A tenant is named by 1 to 32 small letters, digits and hyphens, the first of which is no hyphen.");
  }
  return tenant;
}

/** A key, and whose it is. */
interface KeyedSession {
  readonly key?: string | undefined;
  readonly keyOf?: string | undefined;
  readonly tenant?: string | undefined;
}

/** The id of a session that is to be made or found. Undefined: any new one will do. */
export function sessionId(
  engine: Engine,
  { id, tenant, ...keyed }: KeyedSession & { readonly id?: string },
): SessionId | undefined {
  const prefix = sessionPrefix(tenant);
  const { key } = keyed;
  if (id !== undefined && key !== undefined) throw invalid("Give a session an `id` or a `key`, not both.");
  if (id !== undefined) return checkSessionId(id, prefix);
  if (key === undefined && tenant === undefined) return undefined;
  // The same key makes the same id, so the store itself sees to it that there is one session.
  const name = key === undefined ? engine.newSession().slice(4) : digest(engine, { ...keyed, tenant }, escaped(key));
  return `ses_${prefix.slice(4)}${name}`;
}

/** The id of the session that a prompt with this key has to itself. No key of a session gives the same one. */
export function promptSessionId(engine: Engine, { key, keyOf, tenant }: KeyedSession): SessionId | undefined {
  if (key === undefined) return sessionId(engine, { tenant });
  return `ses_${sessionPrefix(tenant).slice(4)}${digest(engine, { keyOf, tenant }, `${PROMPT}${key}`)}`;
}

const PROMPT = "prompt ";
const SESSION = "session ";

/** Keys of sessions that begin like those of prompts are told apart; all others are digested as they are. */
const escaped = (key: string): string => (key.startsWith(PROMPT) || key.startsWith(SESSION) ? `${SESSION}${key}` : key);

/** Of the key alone without a tenant and an owner, and never that of another's. */
function digest(engine: Engine, { tenant, keyOf }: KeyedSession, key: string): string {
  const within = tenant === undefined ? key : JSON.stringify([tenant, key]);
  const text = keyOf === undefined ? within : JSON.stringify({ keyOf, within });
  return engine.digest(text).slice(0, 32).replaceAll(/[-_]/g, "0");
}

function checkSessionId(id: string, prefix: string): SessionId {
  if (typeof id !== "string" || !isSessionId(id))
    throw invalid('A session id begins with "ses_" and has letters, digits, . _ -');
  if (!id.startsWith(prefix) || id.length === prefix.length)
    throw invalid(`The id of this tenant's sessions begins with "${prefix}".`);
  return id;
}

export function checkTitle(title: unknown): void {
  if (title !== undefined && (typeof title !== "string" || title.length > TITLE_CHARS_MAX)) {
    throw invalid(`A title is a string of at most ${TITLE_CHARS_MAX} characters.`);
  }
}
