// Reads the capabilities of an external agent, tolerating malformed fields. Pure.
import { isObject } from "./kept-json.ts";

export interface Capabilities {
  /** How it restores an earlier session. */
  readonly restore: "resume" | "load" | undefined;
  readonly images: boolean;
  readonly embedded: boolean;
  readonly mcp: { readonly http: boolean; readonly sse: boolean };
  readonly directories: boolean;
  /** Accepts messages while it works. */
  readonly steers: boolean;
  /** Can cancel one of its calls and continue. */
  readonly cancelsCalls: boolean;
  readonly version: number | undefined;
  /** Its names of the ways to log in. */
  readonly logins: readonly string[];
}

/** Reads the answer to `initialize`. */
export function readCapabilities(answer: unknown): Capabilities {
  const { protocolVersion, agentCapabilities, authMethods, _meta: meta } = fieldsOf(answer);
  const agent = fieldsOf(agentCapabilities);
  const prompt = fieldsOf(agent.promptCapabilities);
  const mcp = fieldsOf(agent.mcpCapabilities);
  const session = fieldsOf(agent.sessionCapabilities);
  const resumes = isObject(session.resume);
  return {
    restore: resumes ? "resume" : agent.loadSession === true ? "load" : undefined,
    images: prompt.image === true,
    embedded: prompt.embeddedContext === true,
    mcp: { http: mcp.http === true, sse: mcp.sse === true },
    directories: isObject(session.additionalDirectories),
    steers: fieldsOf(fieldsOf(meta).steering).supported === true,
    cancelsCalls: listOf(fieldsOf(fieldsOf(agent._meta).belay).methods).includes(CANCEL_CALL),
    version: typeof protocolVersion === "number" ? protocolVersion : undefined,
    logins: listOf(authMethods).flatMap(loginOf),
  };
}

/** The protocol has no method for it; this is the extension of a Belay at the other end. */
export const CANCEL_CALL = "_belay/tool_call/cancel";

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

const fieldsOf = (value: unknown): { readonly [key: string]: unknown } => (isObject(value) ? value : {});

const loginOf = (given: unknown): readonly string[] => {
  const { name } = fieldsOf(given);
  return typeof name === "string" && name !== "" ? [name.slice(0, 100)] : [];
};
