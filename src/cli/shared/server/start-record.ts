// The record of a start in the audit trail: how surely commands are held from now on, and what changed since the last
// start. Where the first command is what decides that, there is a second record then.
import type { Tier } from "../../../ports/spawner.ts";
import { systemClock } from "../../../system/system-clock.ts";
import type { AuditRecord } from "../../../telemetry/audit/audit-record.ts";
import type { AuditTrail } from "../../../telemetry/audit/audit-trail.ts";

export class StartRecord {
  /** What was noticed while the mechanism was chosen. */
  #notices: string[] = [];
  #trail: Pick<AuditTrail, "note"> | undefined;
  #tier: (() => Tier | undefined) | undefined;
  #isComplete = false;

  /** A notice about processes. Once the tier is recorded it is not about the start any more. */
  notice(text: string): void {
    if (!this.#isComplete) this.#notices.push(text);
  }

  /** Records the start. `tier`: undefined as long as it is not known. */
  async begin(trail: Pick<AuditTrail, "note">, tier: () => Tier | undefined): Promise<void> {
    this.#trail = trail;
    this.#tier = tier;
    await this.#note(tier());
  }

  /** Something was recorded in a session: the tier may be known now. */
  look(): void {
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
