// The same counts as for a scrape, told to the meter of OpenTelemetry.
import type { Meter } from "@opentelemetry/api";
import { INSTRUMENTS, type InstrumentKey, type Measure, STOP_BUCKETS, WAIT_BUCKETS } from "./instruments.ts";

export type Teller = (measure: Measure) => void;

export function tellMeter(meter: Meter): Teller {
  const tell = new Map<InstrumentKey, Teller>();
  for (const of of Object.keys(INSTRUMENTS) as readonly InstrumentKey[]) tell.set(of, instrument(meter, of));
  return (measure) => tell.get(measure.of)?.(measure);
}

function instrument(meter: Meter, of: InstrumentKey): Teller {
  const { kind, dotted, help, unit } = INSTRUMENTS[of];
  const options = { description: help, unit };
  if (kind === "counter") {
    const counter = meter.createCounter(dotted, options);
    return ({ value, labels }) => counter.add(value, labels);
  }
  const bounds = [...(of === "runStop" ? STOP_BUCKETS : WAIT_BUCKETS)];
  const histogram = meter.createHistogram(dotted, { ...options, advice: { explicitBucketBoundaries: bounds } });
  return ({ value, labels }) => histogram.record(value, labels);
}
