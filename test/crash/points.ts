// The moments at which a server can be made to kill itself, by name: between any two writes of what it records.
import type { Event } from "../../src/core/model/event.ts";

/** What is recorded, by what it is about. One transaction may be several of these. */
export type Kind = "accept" | "start" | "turn" | "call" | "settle" | "cancel" | "recover" | "queue" | "ask" | "process";

const EVENTS: Readonly<Record<Exclude<Kind, "recover">, readonly Event["type"][]>> = {
  accept: ["run.accepted"],
  start: ["run.started"],
  turn: ["turn.requested", "turn.settled", "turn.extended"],
  call: ["call.requested", "call.settled"],
  settle: ["run.settled"],
  cancel: ["session.cancel_requested", "run.cancel_requested", "call.cancel_requested", "process.cancel_requested"],
  queue: ["run.edited", "run.moved", "run.steered", "run.requeued", "run.taken"],
  ask: ["question.asked", "question.settled"],
  process: ["process.requested", "process.started", "process.settled"],
};

/**
 * Where in the life of a transaction. `before-answer`: it is durable, and the thread that answers has just been told.
 */
const PLACES = ["before-begin", "after-row", "before-commit", "after-commit", "before-answer"] as const;
export type Place = (typeof PLACES)[number];

/** The kinds that the contract names get every place; the others the two sides of the commit. */
const WHOLE: readonly Kind[] = ["accept", "start", "turn", "call", "settle", "cancel", "recover"];
const SIDES: readonly Kind[] = ["queue", "ask", "process"];

/** Points that are passed while a server starts, whatever is in its file. */
export const OPENING: readonly string[] = ["open:before-checkpoint", "open:after-checkpoint", "open:after-epochs"];
/** Points that are passed only by a file of an earlier version, or a new one. */
export const MIGRATING: readonly string[] = [
  "migrate:before-begin",
  "migrate:after-begin",
  "migrate:after-statement",
  "migrate:before-commit",
  "migrate:after-commit",
];
/** Points of the taking up of what an earlier life left. */
export const RECOVERING: readonly string[] = PLACES.map((place) => `recover:${place}`);

/** All of them. `answered`: the answer has left for the client. */
export const POINTS: readonly string[] = [
  ...WHOLE.flatMap((kind) => PLACES.map((place) => `${kind}:${place}`)),
  ...SIDES.flatMap((kind) => [`${kind}:before-commit`, `${kind}:after-commit`]),
  "accept:answered",
  "cancel:answered",
  ...OPENING,
  ...MIGRATING,
];

/** What the texts of one message to the writer are about. */
export function kindsOf(texts: readonly string[]): ReadonlySet<Kind> {
  const found = new Set<Kind>();
  for (const text of texts) {
    for (const [kind, types] of Object.entries(EVENTS)) {
      // The edge: the keys of a record are its keys.
      if (types.some((type) => text.includes(`"type":"${type}"`))) found.add(kind as Kind);
    }
    if (text.includes('"type":"run.recovered"') || text.includes('"outcome":{"kind":"lost"}')) found.add("recover");
  }
  return found;
}

/** Environment variables of a server: when it kills itself, the file to note that in, the file of edited modules. */
export const POINT_VARIABLE = "BELAY_CRASH_POINT";
export const HITS_VARIABLE = "BELAY_CRASH_HITS";
export const MODULES_VARIABLE = "BELAY_CRASH_MODULES";
