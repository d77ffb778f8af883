// Writes down every control request before it is answered: done or refused, by whom, and what they were told.
//
// Invariants
// 1. A request is answered whether or not it could be written down: a stop must work also on a full disk.
// 2. Strangers cannot wash out what people have done: of their refusals only so many are written down.
import type { Clock } from "../ports/clock.ts";
import { STRANGERS_NOTED_MAX, STRANGERS_WINDOW_MS } from "./limits.ts";
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
  #strangers = 0;

  constructor(audit: Pick<ServerAudit, "note"> | undefined, clock: Clock, log: ServerLog) {
    this.#audit = audit;
    this.#clock = clock;
    this.#log = log;
  }

  async note(what: AuditEntry): Promise<void> {
    if (this.#audit === undefined || (what.actor === undefined && !this.#hasRoom())) return;
    try {
      await this.#audit.note(recordOf(what, this.#clock.now()));
    } catch (error) {
      this.#log.error("a control request could not be written into the audit trail", {
        requestId: what.request.id,
        action: what.action,
        error,
      });
    }
  }

  #hasRoom(): boolean {
    const now = this.#clock.elapsed();
    if (now - this.#windowFrom >= STRANGERS_WINDOW_MS) {
      this.#windowFrom = now;
      this.#strangers = 0;
    }
    this.#strangers += 1;
    if (this.#strangers === STRANGERS_NOTED_MAX + 1) {
      this.#log.warn("strangers are refused faster than is written into the audit trail");
    }
    return this.#strangers <= STRANGERS_NOTED_MAX;
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
