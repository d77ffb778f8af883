// Validates tenants and titles, and derives session ids from keys.

import { invalid } from "../core/input.ts";
import { TITLE_CHARS_MAX } from "../core/limits.ts";
import { isSessionId, type SessionId, tenantPrefix } from "../core/model/ids.ts";
import type { Engine } from "../engine/engine.ts";

/** Short enough that the ids of everything in a session stay within the limit. */
const TENANT = /^[a-z0-9][a-z0-9-]{0,31}$/;

/** The prefix of a tenant's session ids; without a tenant, of all session ids. */
export function sessionPrefix(tenant: string | undefined): string {
  return tenant === undefined ? "ses_" : tenantPrefix(checkTenant(tenant));
}

export function checkTenant(tenant: string): string {
  if (typeof tenant !== "string" || !TENANT.test(tenant)) {
    throw invalid("A tenant name has 1 to 32 lower-case letters, digits and hyphens, and starts with no hyphen.");
  }
  return tenant;
}

/** An idempotency key, and its owner. */
interface KeyedSession {
  readonly key?: string | undefined;
  readonly keyOf?: string | undefined;
  readonly tenant?: string | undefined;
}

/** The id of a session that is created or found. Undefined: a new id. */
export function sessionId(
  engine: Engine,
  { id, tenant, ...keyed }: KeyedSession & { readonly id?: string },
): SessionId | undefined {
  const prefix = sessionPrefix(tenant);
  const { key } = keyed;
  if (id !== undefined && key !== undefined) throw invalid("Give a session an `id` or a `key`, not both.");
  if (id !== undefined) return checkSessionId(id, prefix);
  if (key === undefined && tenant === undefined) return undefined;
  // The same key gives the same id, so the store itself ensures that there is one session.
  const name = key === undefined ? engine.newSession().slice(4) : digest(engine, { ...keyed, tenant }, escaped(key));
  return `ses_${prefix.slice(4)}${name}`;
}

/** The id of the session that a prompt with this key creates. No session key gives the same id. */
export function promptSessionId(engine: Engine, { key, keyOf, tenant }: KeyedSession): SessionId | undefined {
  if (key === undefined) return sessionId(engine, { tenant });
  return `ses_${sessionPrefix(tenant).slice(4)}${digest(engine, { keyOf, tenant }, `${PROMPT}${key}`)}`;
}

const PROMPT = "prompt ";
const SESSION = "session ";

/** Session keys that begin like prompt keys are escaped; all others are hashed unchanged. */
const escaped = (key: string): string => (key.startsWith(PROMPT) || key.startsWith(SESSION) ? `${SESSION}${key}` : key);

/** Without a tenant and an owner, a digest of the key alone, which never equals that of another owner. */
function digest(engine: Engine, { tenant, keyOf }: KeyedSession, key: string): string {
  const within = tenant === undefined ? key : JSON.stringify([tenant, key]);
  const text = keyOf === undefined ? within : JSON.stringify({ keyOf, within });
  return engine.digest(text).slice(0, 32).replaceAll(/[-_]/g, "0");
}

function checkSessionId(id: string, prefix: string): SessionId {
  if (typeof id !== "string" || !isSessionId(id))
    throw invalid('A session id begins with "ses_" and has letters, digits, . _ -');
  if (!id.startsWith(prefix) || id.length === prefix.length)
    throw invalid(`The id of a session of this tenant must begin with "${prefix}".`);
  return id;
}

export function checkTitle(title: unknown): void {
  if (title !== undefined && (typeof title !== "string" || title.length > TITLE_CHARS_MAX)) {
    throw invalid(`A title must be a string of at most ${TITLE_CHARS_MAX} characters.`);
  }
}
