// The work as it is recorded, counted for whoever scrapes.
import type { Recorded } from "../core/model/event.ts";
import type { SessionId } from "../core/model/ids.ts";
import { EventCounters } from "./event-counters.ts";
import { INSTRUMENTS, type InstrumentKey, type Measure, STOP_BUCKETS, WAIT_BUCKETS } from "./instruments.ts";
import type { Metrics } from "./metrics.ts";

/** Hears of everything that is recorded. Does not throw. */
export type Tap = (session: SessionId, events: readonly Recorded[]) => void;

/** Registers what is measured, and answers what must hear of the events. */
export function eventMetrics(metrics: Metrics): Tap {
  const tally = new EventCounters();
  const tell = new Map<InstrumentKey, (measure: Measure) => void>();
  for (const of of Object.keys(INSTRUMENTS) as readonly InstrumentKey[]) tell.set(of, instrument(metrics, of));
  return (_, events) => {
    for (const measure of tally.of(events)) tell.get(measure.of)?.(measure);
  };
}

function instrument(metrics: Metrics, of: InstrumentKey): (measure: Measure) => void {
  const about = INSTRUMENTS[of];
  if (about.kind === "counter") {
    const counter = metrics.counter<string>(about);
    return ({ value, labels }) => counter.add(value, labels);
  }
  const histogram = metrics.histogram<string>(about, of === "runStop" ? STOP_BUCKETS : WAIT_BUCKETS);
  return ({ value, labels }) => histogram.observe(value, labels);
}
