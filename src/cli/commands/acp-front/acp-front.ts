// `belay acp-front`: any other agent that speaks ACP, under Belay. The editor speaks to us, and we to the agent.
//
// Each command has a home of its own below the home, so that an editor never gets the agent of another one. Its runs
// are found there: `belay ps --home …`.
import { basename, join } from "node:path";
import { ControlError } from "../../../core/errors.ts";
import type { SessionId } from "../../../core/model/ids.ts";
import type { Json } from "../../../core/model/prompt.ts";
import { withPackage } from "../../../core/optional-package.ts";
import { openDataDir } from "../../../sdk/data-dir.ts";
import { version } from "../../../system/version.ts";
import { digestOf } from "../../shared/server/agent-digest.ts";
import type { AgentFlags } from "../../shared/server/agent-options.ts";
import { type AcpFlags, amongEditors, withEditor } from "../acp/acp.ts";
import { shellQuoted } from "../serve/serve-greeting.ts";

export interface FrontFlags
  extends Pick<AcpFlags, "atEnd" | "home">,
    Pick<AgentFlags, "config" | "require" | "directories"> {}

/** What an editor has brought along for its sessions. The oldest is forgotten: more are not open at once. */
const BROUGHT_SESSIONS_MAX = 1_024;

export async function startFront(command: readonly string[], flags: FrontFlags): Promise<number> {
  const [program, ...words] = command;
  if (program === undefined) throw noCommand();
  // As it is now: keys that Belay would keep for itself are meant for the agent behind it.
  const inherit = { ...process.env };
  const brought = new Brought();
  const mark = digestOf([program, ...words]);
  const base = openDataDir({ home: flags.home, env: process.env }).dir;
  const home = openDataDir({ home: join(base, "fronts", mark), env: process.env });
  return withEditor(flags, async (context) => {
    const load = () => import("../../../protocols/acp/client/external-agent.ts");
    const { externalAgent } = await withPackage("@agentclientprotocol/sdk", "belay acp-front", load);
    const { AgentSessions } = await import("../../../protocols/acp/client/agent-sessions.ts");
    const updates = new AgentSessions();
    const agent = externalAgent({
      ...{ command: [program, ...words], inherit, cwd: process.cwd(), version: version() },
      sessions: (id) => brought.of(id),
      updates,
    });
    const given = { agent, describe: `the agent behind ${basename(program)}` };
    const place = await amongEditors(context, { home, mark, flags, agent: given });
    context.log.info(`its runs are found with: belay ps --home ${shellQuoted(home.dir)}`, { agent: program });
    return {
      place,
      // In another editor's program these are not at hand.
      ...(place.hosts ? { behind: updates } : {}),
      onSession: ({ sessionId, mcpServers, additionalDirectories }) => {
        brought.put(sessionId, { mcpServers, additionalDirectories });
        // Not handed on: they may hold secrets, and the log of a session is no place for those.
        if (!place.hosts && mcpServers.length > 0) context.log.warn(NOT_BROUGHT, { sessionId, where: place.where });
      },
    };
  });
}

const NOT_BROUGHT = "the agent does not get the MCP servers of this session: it works in another editor's program";

/** In memory only: it may hold secrets. */
interface Luggage {
  readonly mcpServers: readonly Json[];
  readonly additionalDirectories: readonly string[];
}

class Brought {
  readonly #bySession = new Map<SessionId, Luggage>();

  put(session: SessionId, luggage: Luggage): void {
    this.#bySession.delete(session);
    this.#bySession.set(session, luggage);
    const [oldest] = this.#bySession.keys();
    if (this.#bySession.size > BROUGHT_SESSIONS_MAX && oldest !== undefined) this.#bySession.delete(oldest);
  }

  of(session: SessionId): Luggage | undefined {
    return this.#bySession.get(session);
  }
}

const noCommand = (): ControlError =>
  new ControlError("invalid", "No command was given: which agent is meant?", {
    hint: "Name the agent after two dashes: belay acp-front -- some-agent --acp",
  });
