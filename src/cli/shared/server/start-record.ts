// Records a start in the audit trail: the containment tier, and its change since the last start. If only the first
// command determines the tier, a second record follows then.
import type { Tier } from "../../../ports/spawner.ts";
import { systemClock } from "../../../system/system-clock.ts";
import type { AuditRecord } from "../../../telemetry/audit/audit-record.ts";
import type { AuditTrail } from "../../../telemetry/audit/audit-trail.ts";

export class StartRecord {
  /** Notices from the choice of the mechanism. */
  #notices: string[] = [];
  #trail: Pick<AuditTrail, "note"> | undefined;
  #tier: (() => Tier | undefined) | undefined;
  #isComplete = false;

  /** Adds a notice about processes. After the tier was recorded, a notice is not about the start and is ignored. */
  notice(text: string): void {
    if (!this.#isComplete) this.#notices.push(text);
  }

  /** Records the start. `tier`: undefined as long as it is not known. */
  async begin(trail: Pick<AuditTrail, "note">, tier: () => Tier | undefined): Promise<void> {
    this.#trail = trail;
    this.#tier = tier;
    await this.#note(tier());
  }

  /** Called after each event of a session: the tier may be known now. */
  check(): void {
    if (this.#isComplete || this.#tier === undefined) return;
    const tier = this.#tier();
    if (tier !== undefined) void this.#note(tier);
  }

  #note(tier: Tier | undefined): Promise<void> {
    const note = this.#notices.join(" ");
    this.#notices = [];
    this.#isComplete = tier !== undefined;
    const record: AuditRecord = {
      ...{ id: `start-${process.pid}`, at: systemClock.now(), actor: "belay", via: "cli", action: "start" },
      answer: tier === undefined ? "started" : `tier ${tier}`,
      ...(note === "" ? {} : { note }),
    };
    return this.#trail?.note(record) ?? Promise.resolve();
  }
}
