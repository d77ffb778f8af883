// Records every control request in the audit trail before it is answered, denied ones included.
//
// Invariants
// 1. A request is answered even if it cannot be recorded: a stop must work on a full disk.
// 2. Requests without a valid token cannot flood the trail: only a limited number of their denials is recorded.
import type { Clock } from "../ports/clock.ts";
import { ANONYMOUS_NOTED_MAX, ANONYMOUS_WINDOW_MS } from "./limits.ts";
import type { AuditNote, ServerAudit, ServerLog } from "./observer.ts";
import { type Actor, type HttpRequest, NO_ACTOR } from "./transport/http-exchange.ts";

export interface AuditEntry {
  readonly request: HttpRequest;
  readonly actor: Actor | undefined;
  readonly action: string;
  readonly target: string | undefined;
  readonly answer: string;
  readonly code: string | undefined;
  readonly note: string | undefined;
}

export class AuditLog {
  readonly #audit: Pick<ServerAudit, "note"> | undefined;
  readonly #clock: Clock;
  readonly #log: ServerLog;
  #windowFrom = Number.NEGATIVE_INFINITY;
  #anonymous = 0;

  constructor(audit: Pick<ServerAudit, "note"> | undefined, clock: Clock, log: ServerLog) {
    this.#audit = audit;
    this.#clock = clock;
    this.#log = log;
  }

  async note(entry: AuditEntry): Promise<void> {
    if (this.#audit === undefined || (entry.actor === undefined && !this.#allowsAnonymous())) return;
    try {
      await this.#audit.note(recordOf(entry, this.#clock.now()));
    } catch (error) {
      this.#log.error("a control request could not be recorded in the audit trail", {
        requestId: entry.request.id,
        action: entry.action,
        error,
      });
    }
  }

  #allowsAnonymous(): boolean {
    const now = this.#clock.elapsed();
    if (now - this.#windowFrom >= ANONYMOUS_WINDOW_MS) {
      this.#windowFrom = now;
      this.#anonymous = 0;
    }
    this.#anonymous += 1;
    if (this.#anonymous === ANONYMOUS_NOTED_MAX + 1) {
      this.#log.warn("too many requests without a valid token: some are not recorded in the audit trail");
    }
    return this.#anonymous <= ANONYMOUS_NOTED_MAX;
  }
}

function recordOf({ request, actor, action, target, answer, code, note }: AuditEntry, at: number): AuditNote {
  return {
    id: request.id,
    at,
    actor: actor?.name ?? NO_ACTOR,
    via: request.via === "socket" ? "socket" : "http",
    action,
    ...(target === undefined ? {} : { target }),
    answer,
    ...(code === undefined ? {} : { code }),
    ...(note === undefined ? {} : { note }),
    ...(actor?.tenant === undefined ? {} : { tenant: actor.tenant }),
  };
}
