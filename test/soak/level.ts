// What a server holds when nothing goes on in it, and what it holds more of than it did.
import type { Memory } from "./memory.ts";
import type { Outside } from "./outside.ts";

export interface Level {
  readonly outside: Outside;
  readonly memory: Memory;
  /** By class. */
  readonly objects: Readonly<Record<string, number>>;
  /** What the server says of itself in /metrics: live runs, sessions that wait, processes, streams, connections. */
  readonly gauges: Readonly<Record<string, number>>;
  /** Sessions that are open. */
  readonly sessions: number;
}

/** Something there is more of than there was, after the same work once more. */
export interface Leak {
  readonly what: string;
  readonly before: number;
  readonly after: number;
}

/** How many objects of one class may come and go: what was asked last is still being let go. */
export const OBJECTS_SLACK = 8;

/** What is kept for each of so many runs is no accident of the moment. */
export const OBJECTS_SHARE_OF_RUNS = 0.05;

/** Where there are thousands, one in two hundred is an accident too. */
export const OBJECTS_SHARE_OF_MANY = 0.005;

/**
 * Of what has no class of its own there is more or less by this many, however few the runs: the last 32 to 64 events of
 * the house, what the four lanes that stay have answered under keys, ten outputs, and what the engine has learned of
 * code that it runs often.
 */
const PLAIN = new Set(["Object", "Array", "system / Context"]);
export const PLAIN_SLACK = 256;

/** Of these there are none in a server at rest, whatever was before. */
const NONE_AT_REST: readonly ((level: Level) => readonly (readonly [string, number])[])[] = [
  ({ outside }) => [["zombies", outside.zombies]],
  ({ gauges }) => Object.entries(gauges),
  ({ sessions }) => [["open sessions", sessions]],
];

export function leaksBetween(before: Level, after: Level, runs: number): readonly Leak[] {
  const share = Math.max(OBJECTS_SLACK, OBJECTS_SHARE_OF_RUNS * runs);
  const slack = (name: string): number =>
    Math.max(share, OBJECTS_SHARE_OF_MANY * (before.objects[name] ?? 0)) + (PLAIN.has(name) ? PLAIN_SLACK : 0);
  const absolute = NONE_AT_REST.flatMap((read) =>
    read(after).map(([what, count]): Leak => ({ what, before: 0, after: count })),
  );
  return [
    ...absolute,
    ...grown(before.outside.open, after.outside.open).map((one) => ({ ...one, what: `open ${one.what}` })),
    { what: "threads", before: before.outside.threads, after: after.outside.threads },
    { what: "descendants", before: before.outside.descendants.length, after: after.outside.descendants.length },
    ...grown(before.memory.resources, after.memory.resources),
    ...grown(before.objects, after.objects).filter((one) => one.after - one.before > slack(one.what)),
  ].filter((one) => one.after > one.before);
}

function grown(before: Readonly<Record<string, number>>, after: Readonly<Record<string, number>>): readonly Leak[] {
  return Object.entries(after).map(([what, count]) => ({ what, before: before[what] ?? 0, after: count }));
}

/** How much there is too much, altogether. */
export const countOf = (leaks: readonly Leak[]): number =>
  leaks.reduce((total, { before, after }) => total + after - before, 0);
