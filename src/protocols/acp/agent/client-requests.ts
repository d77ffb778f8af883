// Requests that are the same in both versions of the protocol.
import type { Json } from "../../../core/model/prompt.ts";
import type { AcpSessions, ClientResources } from "./acp-sessions.ts";
import * as extension from "./methods/extensions.ts";
import type { OwnPrompt } from "./own-prompt.ts";
import { promptOf } from "./prompt-content.ts";
import { invalidParams, rpcError } from "./rpc-error.ts";
import type { ListedSession } from "./session-list.ts";

/** Belay's own part of the answer to `initialize`. */
export const aboutBelay = (version: string): { readonly belay: object } => ({
  belay: { version, methods: [...extension.EXTENSIONS], heldPrompts: true, runIds: true },
});

export const STEERABLE = { steering: { supported: true } } as const;

/** Registers a prompt synchronously, so that nothing overtakes it. */
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
): Promise<{ readonly sessions: ListedSession[]; readonly nextCursor?: string }> {
  const options = { cwd: cwd ?? undefined, cursor: cursor ?? undefined };
  const { sessions, nextCursor } = await extension.withRpcErrors(context.list(options));
  return { sessions: [...sessions], ...(nextCursor === undefined ? {} : { nextCursor }) };
}

interface ResourceParams {
  readonly cwd: string;
  readonly mcpServers?: readonly object[] | null | undefined;
  readonly additionalDirectories?: readonly string[] | null | undefined;
}

export function resourcesOf({ cwd, mcpServers, additionalDirectories }: ResourceParams): ClientResources {
  if (!cwd.startsWith("/") && !/^[A-Za-z]:[\\/]/.test(cwd)) throw invalidParams("`cwd` must be an absolute path.");
  // Validated by the protocol's schema, so it is JSON.
  return { cwd, mcpServers: (mcpServers ?? []) as readonly Json[], additionalDirectories: additionalDirectories ?? [] };
}
