// The way from the server to the door of the editors. Loaded with the first of them: most servers never see one.

import type { Clock } from "../../ports/clock.ts";
import type { BelayControl } from "../../ports/control.ts";
import { acpAgent } from "../../protocols/acp/agent/acp-agent.ts";
import type { Gatekeeper } from "../auth/guard.ts";
import type { AuditNote, ServerAudit, ServerLog, ServerMetrics } from "../observer.ts";
import type { Actor } from "../transport/http-exchange.ts";
import type { AcpOpener } from "./acp-connection.ts";
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
    ...{ clock, guard, log, door: (actor: Actor) => doorFor(actor, parts) },
    changed: (open) => metrics?.acp(open),
  });
}

/** One for each connection: who is at its other end goes with it. */
function doorFor({ name, tenant, scopes: may }: Actor, parts: OpenAcpParts): AcpOpener {
  const { control, clock, version, audit, log } = parts;
  return acpAgent({
    ...{ control, clock, version, client: { name, tenant, may } },
    ...(audit === undefined ? {} : { audit: { note: (record) => noted(record, audit, log) } }),
    notice: (text) => log.warn(text, { actor: name }),
  });
}

/** A request is answered whether or not it could be written down: a stop must work also on a full disk. */
async function noted(record: AuditNote, audit: Pick<ServerAudit, "note">, log: ServerLog): Promise<void> {
  try {
    await audit.note(record);
  } catch (error) {
    const { id: requestId, action } = record;
    log.error("a control request could not be written into the audit trail", { requestId, action, error });
  }
}
