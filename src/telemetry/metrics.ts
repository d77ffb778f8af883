// Counters, gauges and histograms, in the text exposition format of Prometheus, version 0.0.4.
//
// Invariants
// 1. A metric has at most SERIES_MAX series and one more, `other`, for all the rest. No label contains an id (K11).
// 2. Recording a value never throws, and a gauge whose callback throws is omitted.
import { Bug } from "../core/bug.ts";
import { LABEL_CHARS_MAX, SERIES_MAX } from "./limits.ts";

export const METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export interface MetricAbout<L extends string = string> {
  /** Includes the unit, as in `belay_queue_wait_seconds`; a counter ends in `_total`. */
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
  /** Default SERIES_MAX. May be higher if all label values are known in advance. */
  readonly seriesMax?: number;
}

export type Labels<L extends string = string> = Readonly<Record<L, string>>;

export interface Counter<L extends string = string> {
  add(by: number, labels: Labels<L>): void;
}

export interface Histogram<L extends string = string> {
  observe(value: number, labels: Labels<L>): void;
}

export interface Reading {
  readonly value: number;
  readonly labels: Labels;
}

/** Returns the current value, or one for each set of labels. */
export type ReadGauge = () => number | readonly Reading[];

interface Registered {
  readonly about: MetricAbout;
  readonly type: "counter" | "gauge" | "histogram";
  /** Formats the lines of its samples. */
  readonly samples: () => readonly string[];
}

export class Metrics {
  readonly #registered = new Map<string, Registered>();

  counter<L extends string = never>(about: MetricAbout<L>): Counter<L> {
    const series = new SeriesSet<L, { value: number }>(about, () => ({ value: 0 }));
    const samples = (): readonly string[] =>
      series.all().map(([labels, { value }]) => sample(about.name, labels, value));
    this.#register({ about, type: "counter", samples });
    return {
      add(by, labels) {
        // Prometheus takes a decreasing counter for a restart.
        if (by > 0 && Number.isFinite(by)) series.of(labels).value += by;
      },
    };
  }

  /** Registers a gauge. Its callback runs at every scrape, so the value is always current. */
  gauge(about: MetricAbout, read: ReadGauge): void {
    const samples = (): readonly string[] => {
      const found = readings(read).slice(0, SERIES_MAX);
      return found.map(({ value, labels }) => sample(about.name, Object.entries(labels), value));
    };
    this.#register({ about, type: "gauge", samples });
  }

  /** `buckets` are ascending upper bounds. The unbounded bucket is added. */
  histogram<L extends string = never>(about: MetricAbout<L>, buckets: readonly number[]): Histogram<L> {
    const { name } = about;
    const bounds = [...buckets, Infinity];
    const make = (): Buckets => ({ counts: bounds.map(() => 0), sum: 0 });
    const series = new SeriesSet<L, Buckets>(about, make);
    const samples = (): readonly string[] => series.all().flatMap(([labels, one]) => spread(name, labels, bounds, one));
    this.#register({ about, type: "histogram", samples });
    return {
      observe(value, labels) {
        if (!Number.isFinite(value)) return;
        const one = series.of(labels);
        const index = bounds.findIndex((bound) => value <= bound);
        one.counts[index] = (one.counts[index] ?? 0) + 1;
        one.sum += value;
      },
    };
  }

  /** The response to a scrape. */
  text(): string {
    return [...this.#registered.values()]
      .flatMap(({ about, type, samples }) => [
        `# HELP ${about.name} ${about.help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`,
        `# TYPE ${about.name} ${type}`,
        ...samples(),
      ])
      .map((line) => `${line}\n`)
      .join("");
  }

  #register(one: Registered): void {
    const { name, labels = [] } = one.about;
    const isValid = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name) && labels.every((label) => /^[a-z][a-z0-9_]*$/.test(label));
    if (!isValid || labels.includes("le")) throw new Bug(`not the name of a metric: ${name}{${labels.join(",")}}`);
    if (this.#registered.has(name)) throw new Bug(`there is a metric called ${name} already`);
    this.#registered.set(name, one);
  }
}

interface Buckets {
  /** Counts each value once, in the first bucket that it fits. */
  readonly counts: number[];
  sum: number;
}

type LabelPairs = readonly (readonly [string, string])[];

/** The series of a metric: one state for each set of label values. */
class SeriesSet<L extends string, S> {
  readonly #names: readonly L[];
  readonly #max: number;
  readonly #make: () => S;
  readonly #series = new Map<string, { readonly labels: LabelPairs; readonly state: S }>();

  constructor({ labels: names = [], seriesMax = SERIES_MAX }: MetricAbout<L>, make: () => S) {
    this.#names = names;
    this.#max = seriesMax;
    this.#make = make;
    // Without labels there is one series, created immediately: before the first value it is 0, not missing.
    if (names.length === 0) this.#get([]);
  }

  of(labels: Labels<L>): S {
    const pairs = this.#names.map((name) => [name, String(labels[name] ?? "").slice(0, LABEL_CHARS_MAX)] as const);
    const known = this.#series.get(JSON.stringify(pairs));
    if (known !== undefined) return known.state;
    return this.#get(this.#series.size < this.#max ? pairs : this.#names.map((name) => [name, "other"] as const));
  }

  all(): readonly (readonly [LabelPairs, S])[] {
    return [...this.#series.values()].map(({ labels, state }) => [labels, state] as const);
  }

  #get(labels: LabelPairs): S {
    const key = JSON.stringify(labels);
    const one = this.#series.get(key) ?? { labels, state: this.#make() };
    this.#series.set(key, one);
    return one.state;
  }
}

function readings(read: ReadGauge): readonly Reading[] {
  try {
    const found = read();
    return typeof found === "number" ? [{ value: found, labels: {} }] : found;
  } catch {
    return [];
  }
}

function spread(name: string, labels: LabelPairs, bounds: readonly number[], one: Buckets): readonly string[] {
  let below = 0;
  const buckets = bounds.map((bound, index) => {
    below += one.counts[index] ?? 0;
    return sample(`${name}_bucket`, [...labels, ["le", number(bound)]], below);
  });
  return [...buckets, sample(`${name}_sum`, labels, one.sum), sample(`${name}_count`, labels, below)];
}

function sample(name: string, labels: LabelPairs, value: number): string {
  const pairs = labels.map(([label, text]) => `${label}="${escaped(text)}"`);
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${number(value)}`;
}

const escaped = (text: string): string =>
  text.toWellFormed().replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

function number(value: number): string {
  if (value === Infinity) return "+Inf";
  return value === -Infinity ? "-Inf" : String(value);
}
