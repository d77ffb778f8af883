// Formats points in time for people.

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** How long ago: `12s`, `5m`, `2h`, `3d`. A time in the future, by another machine's clock, is `0s`. */
export function ageOf(at: number | undefined, now: number): string {
  if (at === undefined) return "";
  const ms = Math.max(0, now - at);
  if (ms < MINUTE_MS) return `${Math.floor(ms / SECOND_MS)}s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)}m`;
  return ms < 2 * DAY_MS ? `${Math.floor(ms / HOUR_MS)}h` : `${Math.floor(ms / DAY_MS)}d`;
}

/** The time of day in the reader's time zone. */
export const timeOfDay = (at: number): string => TIME.format(at);

/** Day and time, in an order that sorts. */
export const dayAndTime = (at: number): string => DAY.format(at);

// Formats need no Date: the time was recorded in the log.
const TIME = new Intl.DateTimeFormat("sv-SE", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
