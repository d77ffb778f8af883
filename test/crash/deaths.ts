// When each life of a round ends: at a named point, at a moment while it serves, or while it starts.
import { type Chooser, chance, pick } from "../../sim/chooser.ts";
import { MIGRATING, OPENING, POINTS, RECOVERING } from "./points.ts";

export type Death =
  | {
      readonly kind: "point";
      readonly point: string;
      /** The how manieth time it is passed. */
      readonly nth: number;
      /** It was asked for by name, so it is waited for. */
      readonly patient?: true;
    }
  /** So long after it is ready, or after it was started. */
  | { readonly kind: "serving" | "starting"; readonly ms: number };

/** How long a life may serve before a point is given up: on a busy machine what leads there takes its time. */
const POINT_MS_MAX = 2_500;
const PATIENT_MS_MAX = 10_000;

/** How long a life may serve that is to end like this. */
export function servingMs(death: Death): number {
  if (death.kind === "serving") return death.ms;
  return death.kind === "point" && death.patient === true ? PATIENT_MS_MAX : POINT_MS_MAX;
}

const SERVING_MS = 300;
const STARTING_MS = 600;
const SERVING = POINTS.filter((point) => ![...MIGRATING, ...OPENING, ...RECOVERING].includes(point));
const NTH_MAX = 6;

/**
 * Given points (`call:after-commit`, or `call:after-commit#3` for the third time) are gone through in their order, each
 * until it was hit or has been tried often enough.
 */
const TRIES_MAX = 4;

export class Deaths {
  readonly #chooser: Chooser;
  readonly #given: string[];
  /** Before its file has been brought to this version: later these are not passed any more. */
  #first: readonly string[];
  readonly #own: string[] = [];
  #tries = 0;
  #nested = 0;

  constructor(chooser: Chooser, given: readonly string[] | undefined) {
    this.#chooser = chooser;
    this.#given = [...(given ?? [])];
    this.#first = given === undefined ? MIGRATING.filter(() => chance(chooser, 40)) : [];
  }

  next(): Death {
    const given = this.#given[0];
    if (given !== undefined) {
      this.#tries += 1;
      if (this.#tries > TRIES_MAX && this.#given.length > 1) this.#next();
      const [point = "", nth = "1"] = (this.#given[0] ?? given).split("#");
      return { kind: "point", point, nth: Number(nth), patient: true };
    }
    const [first] = this.#first;
    if (first !== undefined) {
      this.#first = this.#first.slice(1);
      return { kind: "point", point: first, nth: first === "migrate:after-statement" ? 1 + this.#chooser.below(6) : 1 };
    }
    const roll = this.#chooser.below(100);
    // Recovery is killed, and the recovery from that, some times in a row.
    if (roll < 20 || (this.#nested > 0 && this.#nested < 3 && roll < 60)) return this.#whileStarting();
    this.#nested = 0;
    if (roll < 80) return this.#atPoint();
    return { kind: "serving", ms: this.#chooser.below(SERVING_MS) };
  }

  /** A server was ready: its file has been brought to this version. */
  served(): void {
    this.#first = [];
  }

  /** The server said that it died there. */
  passed(point: string): void {
    if (this.#given[0]?.split("#")[0] !== point) return;
    this.#next();
  }

  #next(): void {
    this.#given.shift();
    this.#tries = 0;
  }

  #whileStarting(): Death {
    this.#nested += 1;
    if (chance(this.#chooser, 40)) return { kind: "starting", ms: this.#chooser.below(STARTING_MS) };
    return { kind: "point", point: pick(this.#chooser, [...OPENING, ...RECOVERING]), nth: 1 };
  }

  #atPoint(): Death {
    if (this.#own.length === 0) this.#own.push(...shuffled(this.#chooser, SERVING));
    const point = this.#own.shift() ?? "settle:before-commit";
    return { kind: "point", point, nth: 1 + this.#chooser.below(NTH_MAX) };
  }
}

function shuffled<T>(chooser: Chooser, from: readonly T[]): T[] {
  const left = [...from];
  const mixed: T[] = [];
  while (left.length > 0) mixed.push(...left.splice(chooser.below(left.length), 1));
  return mixed;
}
