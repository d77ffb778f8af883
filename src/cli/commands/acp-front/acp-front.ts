// `belay acp-front`: runs an external ACP agent under Belay. Belay is the agent of the editor, and the client of the
// external agent.
//
// Each command has its own data directory, so that an editor never gets the agent of another one. Its runs are found
// with `belay ps --home …`.
import { basename, join } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import type { SessionId } from "../../../core/model/ids.ts";
import type { Json } from "../../../core/model/prompt.ts";
import { withPackage } from "../../../core/optional-package.ts";
import { openDataDir } from "../../../sdk/data-dir.ts";
import { version } from "../../../system/version.ts";
import { digestOf } from "../../shared/server/agent-digest.ts";
import type { AgentFlags } from "../../shared/server/agent-options.ts";
import { type AcpFlags, openHosts, withEditor } from "../acp/acp.ts";
import { shellQuoted } from "../serve/serve-greeting.ts";

export interface FrontFlags
  extends Pick<AcpFlags, "atEnd" | "home">,
    Pick<AgentFlags, "config" | "require" | "directories"> {}

/** Session options are kept for this many sessions, and the oldest are evicted: no more are open at once. */
const SESSIONS_MAX = 1_024;

export async function startFront(command: readonly string[], flags: FrontFlags): Promise<number> {
  const [program, ...args] = command;
  if (program === undefined) throw noCommand();
  // Copied now, before Belay removes the provider keys: they are meant for the external agent.
  const inherit = { ...process.env };
  const sessionOptions = new SessionOptionsCache();
  const agentDigest = digestOf([program, ...args]);
  const base = openDataDir({ home: flags.home, env: process.env }).dir;
  const home = openDataDir({ home: join(base, "fronts", agentDigest), env: process.env });
  return withEditor(flags, async (context) => {
    const load = () => import("../../../protocols/acp/client/external-agent.ts");
    const { externalAgent } = await withPackage("@agentclientprotocol/sdk", "belay acp-front", load);
    const { AgentSessions } = await import("../../../protocols/acp/client/agent-sessions.ts");
    const updates = new AgentSessions();
    const agent = externalAgent({
      ...{ command: [program, ...args], inherit, cwd: process.cwd(), version: version() },
      sessions: (id) => sessionOptions.of(id),
      updates,
    });
    const given = { agent, describe: `the agent behind ${basename(program)}` };
    const place = await openHosts(context, { home, agentDigest, flags, agent: given });
    context.log.info(`its runs are found with: belay ps --home ${shellQuoted(home.dir)}`, { agent: program });
    return {
      place,
      // Not available if another editor's program is the host.
      ...(place.hosts ? { behind: updates } : {}),
      onSession: ({ sessionId, mcpServers, additionalDirectories }) => {
        sessionOptions.put(sessionId, { mcpServers, additionalDirectories });
        // Not sent to the host: they may contain secrets, which must not be recorded in the log of a session.
        if (!place.hosts && mcpServers.length > 0)
          context.log.warn(MCP_SERVERS_IGNORED, { sessionId, where: place.where });
      },
    };
  });
}

const MCP_SERVERS_IGNORED =
  "the agent does not get the MCP servers of this session: it works in another editor's program";

/** Kept only in memory: they may contain secrets. */
interface SessionOptions {
  readonly mcpServers: readonly Json[];
  readonly additionalDirectories: readonly string[];
}

class SessionOptionsCache {
  readonly #bySession = new Map<SessionId, SessionOptions>();

  put(session: SessionId, options: SessionOptions): void {
    this.#bySession.delete(session);
    this.#bySession.set(session, options);
    const [oldest] = this.#bySession.keys();
    if (this.#bySession.size > SESSIONS_MAX && oldest !== undefined) this.#bySession.delete(oldest);
  }

  of(session: SessionId): SessionOptions | undefined {
    return this.#bySession.get(session);
  }
}

const noCommand = (): ControlError =>
  new ControlError("invalid", "No command was given: which agent is meant?", {
    hint: "Name the agent after two dashes: belay acp-front -- some-agent --acp",
  });
