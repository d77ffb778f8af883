// What clients of either version ask in the same words.
import type { Json } from "../../../core/model/prompt.ts";
import type { AcpSessions, ClientResources } from "./acp-sessions.ts";
import * as extension from "./methods/extensions.ts";
import type { OwnPrompt } from "./own-prompt.ts";
import { promptOf } from "./prompt-content.ts";
import { invalidParams, rpcError } from "./rpc-error.ts";
import type { Listed } from "./session-list.ts";

/** What is said of Belay when a client introduces itself, beside what the protocol has words for. */
export const aboutBelay = (version: string): { readonly belay: object } => ({
  belay: { version, methods: [...extension.EXTENSIONS], heldPrompts: true, runIds: true },
});

export const STEERABLE = { steering: { supported: true } } as const;

/** In the tick of its arrival: nothing may come before a prompt. */
export function begin(
  context: AcpSessions,
  { sessionId, prompt }: { readonly sessionId: string; readonly prompt: Parameters<typeof promptOf>[0] },
): OwnPrompt {
  try {
    return context.prompt(sessionId, promptOf(prompt));
  } catch (error) {
    throw rpcError(error, { sessionId });
  }
}

interface ListParams {
  readonly cwd?: string | null | undefined;
  readonly cursor?: string | null | undefined;
}

export async function list(
  context: AcpSessions,
  { cwd, cursor }: ListParams,
): Promise<{ readonly sessions: Listed[]; readonly nextCursor?: string }> {
  const options = { cwd: cwd ?? undefined, cursor: cursor ?? undefined };
  const { sessions, nextCursor } = await extension.asking(context.list(options));
  return { sessions: [...sessions], ...(nextCursor === undefined ? {} : { nextCursor }) };
}

interface Bringing {
  readonly cwd: string;
  readonly mcpServers?: readonly object[] | null | undefined;
  readonly additionalDirectories?: readonly string[] | null | undefined;
}

export function broughtBy({ cwd, mcpServers, additionalDirectories }: Bringing): ClientResources {
  if (!cwd.startsWith("/") && !/^[A-Za-z]:[\\/]/.test(cwd)) throw invalidParams("`cwd` is an absolute path.");
  // Decoding: what the protocol's schema let through is JSON.
  return { cwd, mcpServers: (mcpServers ?? []) as readonly Json[], additionalDirectories: additionalDirectories ?? [] };
}
