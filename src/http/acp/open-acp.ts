// Opens ACP on the server. Imported on the first ACP connection: most servers never have one.

import type { Clock } from "../../ports/clock.ts";
import type { BelayControl } from "../../ports/control.ts";
import { acpAgent } from "../../protocols/acp/agent/acp-agent.ts";
import type { Gatekeeper } from "../auth/guard.ts";
import type { AuditNote, ServerAudit, ServerLog, ServerMetrics } from "../observer.ts";
import type { Actor } from "../transport/http-exchange.ts";
import type { ConnectionAgent } from "./acp-connection.ts";
import { AcpConnections } from "./acp-connections.ts";

export interface OpenAcpParts {
  readonly control: BelayControl;
  readonly guard: Gatekeeper;
  readonly clock: Clock;
  readonly version: string;
  readonly log: ServerLog;
  readonly audit: Pick<ServerAudit, "note"> | undefined;
  readonly metrics: ServerMetrics | undefined;
}

export function openAcp(parts: OpenAcpParts): AcpConnections {
  const { clock, guard, log, metrics } = parts;
  return new AcpConnections({
    ...{ clock, guard, log, agentFor: (actor: Actor) => agentFor(actor, parts) },
    onCountChanged: (open) => metrics?.acp(open),
  });
}

/** Creates the agent of one connection, with the permissions of its actor. */
function agentFor({ name, tenant, scopes: may }: Actor, parts: OpenAcpParts): ConnectionAgent {
  const { control, clock, version, audit, log } = parts;
  return acpAgent({
    ...{ control, clock, version, client: { name, tenant, may } },
    ...(audit === undefined ? {} : { audit: { note: (record) => tryNote(record, audit, log) } }),
    notice: (text) => log.warn(text, { actor: name }),
  });
}

/** Records a request, and only logs a failure: a stop must work on a full disk. */
async function tryNote(record: AuditNote, audit: Pick<ServerAudit, "note">, log: ServerLog): Promise<void> {
  try {
    await audit.note(record);
  } catch (error) {
    const { id: requestId, action } = record;
    log.error("a control request could not be recorded in the audit trail", { requestId, action, error });
  }
}
