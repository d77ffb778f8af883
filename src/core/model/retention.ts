// Retention: the limits, and what they require. Without limits everything is kept.
import type { Seq } from "./ids.ts";
import type { Surveyed } from "./upkeep.ts";

/** Limits of what is kept. Each may be left out. */
export interface Retention {
  /** For each session: older events are removed, a whole run at a time. */
  readonly perSession?: {
    readonly days?: number;
    readonly events?: number;
    readonly bytes?: number;
  };
  /** For all sessions together: the sessions that have been inactive longest are deleted first. */
  readonly overall?: {
    /** A session that has been inactive for this long is deleted. */
    readonly days?: number;
    readonly sessions?: number;
    /** The maximum size of the store. */
    readonly bytes?: number;
  };
}

export const DAY_MS = 86_400_000;

/** The limits to look up in a session's log in order to decide where to cut it; undefined: nothing is removed. */
export function within(
  { perSession }: Retention,
  { kept, head, since }: Surveyed,
  now: number,
): { readonly before: Seq; readonly at?: number; readonly bytes?: number } | undefined {
  if (perSession === undefined || kept > head) return undefined;
  const { days, events, bytes } = perSession;
  const oldest = days === undefined ? undefined : now - days * DAY_MS;
  const isOld = oldest !== undefined && since < oldest;
  // Cut with some slack, so that not every run is followed by a cut.
  const isLong = events !== undefined && head - kept + 1 > events * SLACK;
  if (!isOld && !isLong && bytes === undefined) return undefined;
  return {
    before: isLong ? head + 1 - events : kept,
    ...(isOld ? { at: oldest } : {}),
    ...(bytes === undefined ? {} : { bytes }),
  };
}

/** How far a session may exceed its number of events or bytes before it is cut back. */
export const SLACK = 1.125;

/** Whether a session has been inactive for so long that it is deleted. */
export const isForgotten = ({ overall }: Retention, { at }: Surveyed, now: number): boolean =>
  overall?.days !== undefined && at < now - overall.days * DAY_MS;

/** How many sessions exceed the limit. */
export const excessSessions = ({ overall }: Retention, sessions: number): number =>
  overall?.sessions === undefined ? 0 : Math.max(0, sessions - overall.sessions);

/** Whether the store exceeds its maximum size. */
export const isTooLarge = ({ overall }: Retention, usedBytes: number): boolean =>
  overall?.bytes !== undefined && usedBytes > overall.bytes;
