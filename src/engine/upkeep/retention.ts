// Keeps the store within its limits, in the background: examines all sessions repeatedly, a page at a time.
//
// Invariants
// 1. Running work is never affected: a log is cut between runs, and only an idle session is deleted.
// 2. One small step at a time; the store is free for a stop between any two.
// 3. An error of the store ends a pass, and the next pass tries again. The same error is reported once.
import { ControlError, toControlError } from "../../core/errors.ts";
import { invalid, isObject, rejectUnknown } from "../../core/input.ts";
import { RETENTION_EVERY_MS, RETENTION_IDLE_SESSIONS_MAX, RETENTION_SESSIONS_MAX } from "../../core/limits.ts";
import type { SessionId } from "../../core/model/ids.ts";
import { excessSessions, isForgotten, isTooLarge, type Retention, SLACK, within } from "../../core/model/retention.ts";
import type { RetentionStatus, Surveyed, Upkeep } from "../../core/model/upkeep.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Notify } from "../../ports/hooks.ts";
import type { Store } from "../../ports/store.ts";
import type { Removal } from "./removal.ts";

interface Parts {
  readonly limits: Retention;
  readonly store: Store;
  readonly clock: Clock;
  readonly notify: Notify;
  readonly removal: Pick<Removal, "trim" | "removeIdle">;
}

export function startRetention(limits: Retention, parts: Omit<Parts, "limits">): RetentionLoop {
  const { upkeep } = parts.store;
  const { store, clock, notify, removal } = parts;
  if (upkeep !== undefined) return new RetentionLoop({ store, clock, notify, removal, limits }, upkeep);
  throw new ControlError("invalid", "This store cannot remove anything, so there can be no `retention`.", {
    hint: "A custom store needs `upkeep`; see the Store interface.",
  });
}

export class RetentionLoop {
  #removedEvents = 0;
  #deletedSessions = 0;
  #trouble: RetentionStatus["trouble"];
  readonly #parts: Parts;
  readonly #upkeep: Upkeep;
  #cancelTimer: () => void = () => {};
  #stopped = false;
  /** The state of one pass: the number of sessions so far, and the ones that have been inactive longest. */
  #cursor = 0;
  #sessions = 0;
  #idlest: Surveyed[] = [];
  /** The heads of logs that were found to be small enough. */
  #small = new Map<SessionId, number>();

  constructor(parts: Parts, upkeep: Upkeep) {
    this.#parts = parts;
    this.#upkeep = upkeep;
    this.#wait();
  }

  /** What it has removed since the start, and the error of the last pass. */
  get status(): RetentionStatus {
    return { removedEvents: this.#removedEvents, deletedSessions: this.#deletedSessions, trouble: this.#trouble };
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelTimer();
  }

  #wait(): void {
    if (this.#stopped) return;
    this.#cancelTimer = this.#parts.clock.after(RETENTION_EVERY_MS, () => void this.#round(), "idle");
  }

  async #round(): Promise<void> {
    try {
      await this.#page();
      await this.#reclaim();
      this.#trouble = undefined;
    } catch (error) {
      // A page that is read again would count its sessions twice, and too many would be deleted.
      this.#startOver();
      const { code, message } = toControlError(error);
      if (!this.#stopped && this.#trouble !== code) this.#parts.notify({ type: "store", code, message });
      this.#trouble = code;
    }
    this.#wait();
  }

  async #page(): Promise<void> {
    const page = await this.#upkeep.survey({ after: this.#cursor, limit: RETENTION_SESSIONS_MAX });
    for (const one of page) if (!this.#stopped) await this.#look(one);
    this.#cursor = page.at(-1)?.cursor ?? this.#cursor;
    if (page.length === RETENTION_SESSIONS_MAX) return;
    const [sessions, idlest] = [this.#sessions, this.#idlest];
    this.#startOver();
    await this.#deleteIdlest(sessions, idlest);
  }

  #startOver(): void {
    this.#cursor = 0;
    this.#sessions = 0;
    this.#idlest = [];
  }

  async #look(one: Surveyed): Promise<void> {
    const { limits, clock } = this.#parts;
    const now = clock.now();
    if (isForgotten(limits, one, now) && (await this.#delete(one))) return;
    this.#sessions += 1;
    this.#remember(one);
    const options = within(limits, one, now);
    if (options === undefined) return;
    const { before, bytes, ...rest } = options;
    const size = bytes === undefined || this.#small.get(one.id) === one.head ? {} : { bytes: bytes * SLACK };
    let cut = Math.max(before, await this.#upkeep.within(one.id, { ...rest, ...size }));
    const isLarge = "bytes" in size && cut > one.kept;
    if (isLarge && bytes !== undefined) cut = Math.max(before, await this.#upkeep.within(one.id, { ...rest, bytes }));
    if (!isLarge) this.#noteSmall(one);
    if (cut > one.kept) this.#removedEvents += (await this.#parts.removal.trim(one.id, cut)).removed;
  }

  #noteSmall({ id, head }: Surveyed): void {
    if (this.#small.size >= SMALL_MAX) this.#small.clear();
    this.#small.set(id, head);
  }

  /** Remembers the sessions that have been inactive longest. */
  #remember(one: Surveyed): void {
    const { overall } = this.#parts.limits;
    if (overall?.sessions === undefined && overall?.bytes === undefined) return;
    this.#idlest.push(one);
    if (this.#idlest.length < 2 * RETENTION_IDLE_SESSIONS_MAX) return;
    this.#idlest.sort((a, b) => a.at - b.at);
    this.#idlest.length = RETENTION_IDLE_SESSIONS_MAX;
  }

  async #deleteIdlest(sessions: number, idlest: Surveyed[]): Promise<void> {
    const { limits } = this.#parts;
    let excess = excessSessions(limits, sessions);
    idlest.sort((a, b) => a.at - b.at);
    for (const one of idlest) {
      if (this.#stopped || (excess <= 0 && !(await this.#isTooLarge()))) return;
      if (await this.#delete(one)) excess -= 1;
    }
  }

  async #isTooLarge(): Promise<boolean> {
    const { limits } = this.#parts;
    if (limits.overall?.bytes === undefined) return false;
    const { bytes, freeBytes } = await this.#upkeep.usage();
    return isTooLarge(limits, bytes - freeBytes);
  }

  async #delete({ id, head }: Surveyed): Promise<boolean> {
    const isDone = (await this.#parts.removal.removeIdle(id, head)) === "done";
    if (isDone) this.#deletedSessions += 1;
    return isDone;
  }

  async #reclaim(): Promise<void> {
    for (let steps = 0; steps < RECLAIM_STEPS && !this.#stopped; steps += 1) {
      if ((await this.#upkeep.reclaim()) === 0) return;
    }
  }
}

/** Sessions whose size is known to be within the limit; about a hundred bytes each. */
const SMALL_MAX = 65_536;

/** Steps of returning space to the file system in one pass. */
const RECLAIM_STEPS = 16;

/** Validates the limits that a host gives. */
export function checkRetention(given: unknown): Retention {
  if (!isObject(given)) throw invalid("`retention` must be an object: { perSession, overall }.");
  const { perSession, overall, ...rest } = given;
  rejectUnknown(rest, "`retention`");
  checkLimits(perSession, "perSession", ["days", "events", "bytes"]);
  checkLimits(overall, "overall", ["days", "sessions", "bytes"]);
  return given as Retention;
}

function checkLimits(limits: unknown, name: string, known: readonly string[]): void {
  if (limits === undefined) return;
  if (!isObject(limits)) throw invalid(`\`retention.${name}\` must be an object.`);
  for (const [key, value] of Object.entries(limits)) {
    const place = `retention.${name}.${key}`;
    if (!known.includes(key)) throw invalid(`\`${place}\` is not known. It takes ${known.join(", ")}.`);
    const isWhole = key === "days" || Number.isInteger(value);
    if (typeof value !== "number" || !Number.isFinite(value) || value <= 0 || !isWhole)
      throw invalid(`\`${place}\` must be a ${key === "days" ? "" : "whole "}number above 0 (got ${String(value)}).`);
  }
}
