// What `belay run` makes of a place that misbehaves. As a person types it, it is tested in test/cli.
import { expect, test, vi } from "vitest";
import type { EventsOptions } from "../control.ts";
import type { Outcome } from "../core/cancel.ts";
import { ControlError } from "../core/control-error.ts";
import type { Recorded } from "../core/event.ts";
import { openBelay } from "../library/belay.ts";
import { manualClock } from "../testing/manual-clock.ts";
import { type RunPlace, runPrompt } from "./run.ts";
import { EXIT_OUTCOME } from "./run-exit.ts";

const WISH = {
  ...{ key: undefined, title: undefined, delivery: undefined, limitMs: undefined },
  ...({ form: "text", after: "outcome" } as const),
};

/** A real Belay, of which one run is seen through `events` instead of its own. */
async function seenThrough(events: (own: AsyncIterable<Recorded>, options: EventsOptions) => AsyncGenerator<Recorded>) {
  const belay = await openBelay({ store: ":memory:", agent: () => "all of it" });
  const control: RunPlace["control"] = Object.create(belay, {
    prompt: { value: belay.prompt.bind(belay) },
    session: {
      value: (id: string) => ({
        events: (options: EventsOptions) =>
          events(belay.session(id).events({ ...options, deltas: "without" }) as AsyncIterable<Recorded>, options),
      }),
    },
  });
  const place: RunPlace = { control, kind: "server", where: "there", close: () => belay.close() };
  return async () => ({ prompt: { text: "go" }, session: undefined, place });
}

function heardOn(stream: NodeJS.WriteStream): () => string {
  let text = "";
  vi.spyOn(stream, "write").mockImplementation((piece) => {
    text += String(piece);
    return true;
  });
  return () => text;
}

const untilAborted = (signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true }));

test("a stream that does not come back after the outcome is opened anew; nothing is missed or said twice", async () => {
  const clock = manualClock();
  let opened = 0;
  const prepare = await seenThrough(async function* (own, { signal }) {
    opened += 1;
    for await (const event of own) {
      // The first one hangs in the middle, as one does that waits for its next attempt.
      if (opened === 1 && event.type === "turn.requested") {
        await untilAborted(signal);
        return;
      }
      yield event;
    }
  });
  const [out, err] = [heardOn(process.stdout), heardOn(process.stderr)];
  const ended = runPrompt(prepare, { ...WISH, clock });
  await vi.waitFor(() => expect(clock.pending).not.toEqual([]));
  await clock.advance(500);
  expect(await ended).toBe(EXIT_OUTCOME.completed);
  expect(out()).toBe("all of it\n");
  expect(opened).toBe(2);
  expect(err()).not.toContain("could not be shown");
});

test("if it does not come back at all, the outcome still counts, and what is missing is said", async () => {
  const clock = manualClock();
  const prepare = await seenThrough(async function* (own) {
    for await (const event of own) {
      if (event.seq > 0) throw new ControlError("forbidden", "This token may not read.");
      yield event;
    }
  });
  const [out, err] = [heardOn(process.stdout), heardOn(process.stderr)];
  expect(await runPrompt(prepare, { ...WISH, clock })).toBe(EXIT_OUTCOME.completed);
  expect(out()).toBe("");
  expect(err()).toMatch(
    /cannot be followed: This token may not read[\s\S]*could not be shown. It is kept: belay logs run_/,
  );
});

test("without an outcome it is an error, whatever was seen", async () => {
  const clock = manualClock();
  const prepare = await seenThrough(async function* () {});
  const { place, ...asked } = await prepare();
  const gone: Promise<Outcome> = Promise.reject(new ControlError("disconnected", "The server is gone."));
  gone.catch(() => {});
  const control: RunPlace["control"] = Object.create(place.control, {
    prompt: {
      value: (...words: Parameters<typeof place.control.prompt>) =>
        Object.create(place.control.prompt(...words), { outcome: { value: gone } }),
    },
  });
  heardOn(process.stderr);
  await expect(runPrompt(async () => ({ ...asked, place: { ...place, control } }), { ...WISH, clock })).rejects.toThrow(
    "The server is gone.",
  );
});
