// What is kept, for how long: the limits, and what follows from them. Without limits everything is kept.
import type { Seq } from "./ids.ts";
import type { Surveyed } from "./upkeep.ts";

/** One line of configuration. Every limit may be left out. */
export interface Retention {
  /** Of each session: older events are removed, a whole run at a time. */
  readonly perSession?: {
    readonly days?: number;
    readonly events?: number;
    readonly bytes?: number;
  };
  /** Of all together: sessions are deleted, those first in which nothing has happened for longest. */
  readonly overall?: {
    /** A session in which nothing has happened for so long is deleted. */
    readonly days?: number;
    readonly sessions?: number;
    /** What the store may take up. */
    readonly bytes?: number;
  };
}

export const DAY_MS = 86_400_000;

/** What must be known of a session besides its row to decide where its log is cut; undefined: nothing is removed. */
export function within(
  { perSession }: Retention,
  { kept, head, since }: Surveyed,
  now: number,
): { readonly before: Seq; readonly at?: number; readonly bytes?: number } | undefined {
  if (perSession === undefined || kept > head) return undefined;
  const { days, events, bytes } = perSession;
  const oldest = days === undefined ? undefined : now - days * DAY_MS;
  const isOld = oldest !== undefined && since < oldest;
  // Cut a little late, so that not every run is followed by a cut.
  const isLong = events !== undefined && head - kept + 1 > events * SLACK;
  if (!isOld && !isLong && bytes === undefined) return undefined;
  return {
    before: isLong ? head + 1 - events : kept,
    ...(isOld ? { at: oldest } : {}),
    ...(bytes === undefined ? {} : { bytes }),
  };
}

/** How far a session may be over its number of events or bytes before it is cut back to it. */
export const SLACK = 1.125;

/** Whether a session is deleted because nothing has happened in it for too long. */
export const isForgotten = ({ overall }: Retention, { at }: Surveyed, now: number): boolean =>
  overall?.days !== undefined && at < now - overall.days * DAY_MS;

/** How many sessions are too many. */
export const excessSessions = ({ overall }: Retention, sessions: number): number =>
  overall?.sessions === undefined ? 0 : Math.max(0, sessions - overall.sessions);

/** Whether the store takes up more than it may. */
export const isTooLarge = ({ overall }: Retention, usedBytes: number): boolean =>
  overall?.bytes !== undefined && usedBytes > overall.bytes;
