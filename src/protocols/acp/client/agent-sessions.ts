// Passes updates that Belay does not record, and settings, between clients and the sessions of an external agent.
//
// Invariants
// 1. An update is passed on unchanged, whatever its kind: an agent may support more of the protocol than Belay.
// 2. Of updates that replace each other the last one is kept, for a client that opens the session later.
// 3. A setting that is changed while the agent is not running is sent to its next process before the first prompt.
import type { SessionId } from "../../../core/model/ids.ts";
import type { Json } from "../../../core/model/prompt.ts";
import { isObject, type JsonObject, keptJson } from "./kept-json.ts";
import { SESSIONS_KEPT_MAX } from "./limits.ts";

type Listener = (update: JsonObject) => void;
type Send = (method: string, params: JsonObject) => Promise<Json>;

interface Entry {
  readonly listeners: Set<Listener>;
  readonly last: Map<string, JsonObject>;
  readonly settings: Map<string, { readonly method: string; readonly params: JsonObject }>;
  menus: JsonObject | undefined;
  send: Send | undefined;
}

/** Kinds of updates that replace the previous one. */
const STATES: ReadonlySet<Json | undefined> = new Set([
  ...["available_commands_update", "current_mode_update", "config_option_update"],
  ...["session_info_update", "usage_update", "plan"],
]);

const MENUS = ["modes", "models", "configOptions"] as const;

export class AgentSessions {
  readonly #sessions = new Map<SessionId, Entry>();
  #menus: JsonObject | undefined = undefined;

  menus(session: SessionId): JsonObject | undefined {
    return this.#sessions.get(session)?.menus ?? this.#menus;
  }

  follow(session: SessionId, listener: Listener): () => void {
    const { listeners, last } = this.#entry(session);
    listeners.add(listener);
    for (const update of last.values()) listener(update);
    return () => void listeners.delete(listener);
  }

  request(session: SessionId, method: string, params: JsonObject): Promise<Json> | undefined {
    const entry = this.#entry(session);
    if (entry.send !== undefined) return entry.send(method, params);
    entry.settings.set(`${method} ${String(params.configId ?? "")}`, { method, params });
    return undefined;
  }

  /** Handles an update of the agent. */
  update(session: SessionId, given: unknown): void {
    const update = isObject(given) ? keptJson(given) : undefined;
    if (!isObject(update) || typeof update.sessionUpdate !== "string") return;
    const { listeners, last } = this.#entry(session);
    // It went through JSON.
    const kept = update as JsonObject;
    if (STATES.has(kept.sessionUpdate)) last.set(update.sessionUpdate, kept);
    for (const listener of listeners) listener(kept);
  }

  /** Called when the agent has opened its session: applies the settings that were changed before. */
  async opened(session: SessionId, answer: unknown, send: Send): Promise<void> {
    const entry = this.#entry(session);
    const fields = isObject(answer) ? answer : {};
    const menus = MENUS.flatMap((name) => (isObject(fields[name]) || Array.isArray(fields[name]) ? [name] : []));
    if (menus.length > 0) {
      entry.menus = Object.fromEntries(menus.map((name) => [name, keptJson(fields[name])]));
      this.#menus = entry.menus;
      this.#announce(session, entry.menus);
    }
    entry.send = send;
    const settings = [...entry.settings.values()];
    entry.settings.clear();
    // A refused setting stays unchanged; the agent's own update reports the current value.
    for (const { method, params } of settings) await send(method, params).catch(() => undefined);
  }

  /** Called when its process has ended. */
  ended(session: SessionId): void {
    const entry = this.#sessions.get(session);
    if (entry !== undefined) entry.send = undefined;
  }

  /** Sends the menus to clients that opened the session before the agent ran. */
  #announce(session: SessionId, { modes, configOptions }: JsonObject): void {
    if (isObject(modes) && typeof modes.currentModeId === "string") {
      this.update(session, { sessionUpdate: "current_mode_update", currentModeId: modes.currentModeId });
    }
    if (Array.isArray(configOptions)) this.update(session, { sessionUpdate: "config_option_update", configOptions });
  }

  #entry(session: SessionId): Entry {
    const known = this.#sessions.get(session);
    if (known !== undefined) return known;
    const made: Entry = {
      ...{ listeners: new Set<Listener>(), last: new Map(), settings: new Map() },
      ...{ menus: undefined, send: undefined },
    };
    this.#sessions.set(session, made);
    for (const [id, { listeners, send }] of this.#sessions) {
      if (this.#sessions.size <= SESSIONS_KEPT_MAX) break;
      if (listeners.size === 0 && send === undefined && id !== session) this.#sessions.delete(id);
    }
    return made;
  }
}
