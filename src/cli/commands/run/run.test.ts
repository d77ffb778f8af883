// What `belay run` makes of a place that misbehaves. As a person types it, it is tested in test/cli.
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { ControlError } from "../../../core/errors.ts";
import type { Outcome } from "../../../core/model/cancel.ts";
import type { Recorded } from "../../../core/model/event.ts";
import type { EventsOptions, RunControl } from "../../../ports/control.ts";
import { openBelay } from "../../../sdk/belay.ts";
import { manualClock } from "../../../testing/manual-clock.ts";
import { EXIT_SIGNAL } from "../../shared/exit-code.ts";
import { type RunPlace, runPrompt } from "./run.ts";
import { EXIT_OUTCOME } from "./run-exit.ts";

const WISH = {
  ...{ key: undefined, title: undefined, cwd: undefined, delivery: undefined, limitMs: undefined },
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
  const place: RunPlace = {
    control,
    kind: "server",
    where: "there",
    options: " --home /h",
    close: () => belay.close(),
  };
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

test("if it does not come back at all, the answer is read from the run", async () => {
  const clock = manualClock();
  const prepare = await seenThrough(async function* (own) {
    for await (const event of own) {
      if (event.seq > 0) throw new ControlError("forbidden", "This token may not read.");
      yield event;
    }
  });
  const [out, err] = [heardOn(process.stdout), heardOn(process.stderr)];
  expect(await runPrompt(prepare, { ...WISH, clock })).toBe(EXIT_OUTCOME.completed);
  expect(out()).toBe("all of it\n");
  expect(err()).toMatch(/cannot be followed: This token may not read/);
});

test("G15: a disk that is full behind stdout does not cut the run off", async () => {
  const clock = manualClock();
  const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  const prepare = await seenThrough(async function* (own) {
    for await (const event of own) {
      if (event.type === "turn.requested") process.stdout.emit("error", full);
      yield event;
    }
  });
  const exits = vi.fn();
  process.stdout.on("error", exits);
  onTestFinished(() => void process.stdout.off("error", exits));
  const err = heardOn(process.stderr);
  expect(await runPrompt(prepare, { ...WISH, clock })).toBe(EXIT_OUTCOME.completed);
  expect(exits).not.toHaveBeenCalled();
  expect(err()).toMatch(/run_\S+ completed/);
});

test("what a slow reader of stdout has not read is not fetched, and is not lost however long it takes", async () => {
  const clock = manualClock();
  let fetched = 0;
  const prepare = await seenThrough(async function* (own) {
    for await (const event of own) {
      fetched += 1;
      yield event;
    }
  });
  const out = heardOn(process.stdout);
  let isFull = true;
  const needsDrain = { configurable: true, get: () => isFull };
  Object.defineProperty(process.stdout, "writableNeedDrain", needsDrain);
  onTestFinished(() => void Reflect.deleteProperty(process.stdout, "writableNeedDrain"));
  const ended = runPrompt(prepare, { ...WISH, clock });
  await vi.waitFor(async () => {
    await clock.advance(20_000);
    expect(clock.elapsed()).toBeGreaterThan(100_000);
  });
  expect([fetched, out()]).toEqual([1, ""]);
  isFull = false;
  process.stdout.emit("drain");
  await vi.waitFor(async () => {
    await clock.advance(1_000);
    expect(out()).toBe("all of it\n");
  });
  expect(await ended).toBe(EXIT_OUTCOME.completed);
});

/** A run whose outcome is known, and whose answer cannot be read. */
const outOfSight = (run: RunControl): RunControl =>
  Object.create(run, {
    accepted: { value: run.accepted },
    outcome: { value: run.outcome },
    view: { value: () => Promise.reject(new ControlError("disconnected", "It is gone.")) },
  });

test("G15: a run whose answer cannot be read at all does not exit with 0 and an empty stdout", async () => {
  const clock = manualClock();
  const prepare = await seenThrough(async function* () {
    yield* [];
    throw new ControlError("forbidden", "This token may not read.");
  });
  const { place, ...asked } = await prepare();
  const control: RunPlace["control"] = Object.create(place.control, {
    prompt: {
      value: (...words: Parameters<typeof place.control.prompt>) => outOfSight(place.control.prompt(...words)),
    },
  });
  const out = heardOn(process.stdout);
  const ended = runPrompt(async () => ({ ...asked, place: { ...place, control } }), { ...WISH, clock });
  await expect(ended).rejects.toMatchObject({ code: "disconnected", hint: expect.stringMatching(/belay show run_/) });
  expect(out()).toBe("");
});

test("without an outcome it is an error, whatever was seen", async () => {
  const clock = manualClock();
  const prepare = await seenThrough(async function* () {});
  const { place, ...asked } = await prepare();
  const gone: Promise<Outcome> = Promise.reject(new ControlError("disconnected", "The server is gone."));
  gone.catch(() => {});
  const control: RunPlace["control"] = Object.create(place.control, {
    prompt: {
      value: (...words: Parameters<typeof place.control.prompt>) => {
        const run = place.control.prompt(...words);
        return Object.create(run, { accepted: { value: run.accepted }, outcome: { value: gone } });
      },
    },
  });
  heardOn(process.stderr);
  await expect(runPrompt(async () => ({ ...asked, place: { ...place, control } }), { ...WISH, clock })).rejects.toThrow(
    "The server is gone.",
  );
});

describe("Ctrl-C", () => {
  /** A run that goes on until it is stopped, on a place whose answer to a cancel is held back. */
  async function slowToAnswer(kind: RunPlace["kind"]) {
    const clock = manualClock();
    const answer = Promise.withResolvers<void>();
    const belay = await openBelay({ store: ":memory:", agent: (turn) => untilAborted(turn.signal).then(() => "") });
    let stopFirst = (): Promise<unknown> => Promise.resolve();
    const prompt = (...words: Parameters<typeof belay.prompt>): RunControl => {
      const run = belay.prompt(...words);
      stopFirst = () => run.cancel();
      return Object.create(run, {
        accepted: { value: run.accepted },
        outcome: { value: run.outcome },
        sessionId: { value: run.sessionId },
        cancel: { value: (...why: Parameters<typeof run.cancel>) => answer.promise.then(() => run.cancel(...why)) },
      });
    };
    const control: RunPlace["control"] = Object.create(belay, {
      prompt: { value: prompt },
      session: { value: belay.session.bind(belay) },
    });
    const place: RunPlace = { control, kind, where: "there", options: "", close: () => belay.close() };
    const err = heardOn(process.stderr);
    const left = vi.spyOn(process, "exit").mockReturnValue(undefined as never);
    const ended = runPrompt(async () => ({ prompt: { text: "go" }, session: undefined, place }), { ...WISH, clock });
    await vi.waitFor(() => expect(err()).toContain("there"));
    return { clock, answer, err, left, ended, stopFirst: () => stopFirst() };
  }

  test("once: the receipt is shown, also if the outcome is heard of before it", async () => {
    const { clock, answer, err, ended, stopFirst } = await slowToAnswer("server");
    process.emit("SIGINT", "SIGINT");
    await stopFirst();
    await vi.waitFor(() => expect(err()).toContain("is being stopped"));
    await vi.waitFor(() => expect(clock.pending).not.toEqual([]));
    expect(err()).not.toContain("cancel: ");
    answer.resolve();
    expect(await ended).toBe(EXIT_OUTCOME.cancelled);
    expect(err()).toMatch(/cancel: settled: too late[\s\S]*run_\S+ cancelled/);
  });

  test.each([
    ["server", /Left at once\. run_\S+ goes on being stopped by the server/],
    ["here", /Left at once\. run_\S+ is recorded as being stopped/],
  ] as const)("twice on a %s leaves once the cancel has arrived, and not before", async (kind, parting) => {
    const { answer, err, left, ended } = await slowToAnswer(kind);
    process.emit("SIGINT", "SIGINT");
    process.emit("SIGINT", "SIGINT");
    expect(left).not.toHaveBeenCalled();
    answer.resolve();
    await vi.waitFor(() => expect(left).toHaveBeenCalledWith(EXIT_SIGNAL.SIGINT));
    expect(err()).toMatch(parting);
    expect(await ended).toBe(EXIT_OUTCOME.cancelled);
  });

  test("twice, if nobody answers the cancel: leaves in bounded time, and does not say that it is stopped", async () => {
    const { clock, answer, err, left, ended } = await slowToAnswer("server");
    process.emit("SIGINT", "SIGINT");
    process.emit("SIGINT", "SIGINT");
    await clock.advance(1_000);
    await vi.waitFor(() => expect(left).toHaveBeenCalledWith(EXIT_SIGNAL.SIGINT));
    expect(err()).toMatch(/The cancel was not answered, so run_\S+ may go on: belay cancel ses_/);
    answer.resolve();
    await ended;
  });

  test("twice before the prompt was accepted: leaves with the signal's code, and says that it may go on", async () => {
    const clock = manualClock();
    const never = new Promise<never>(() => {});
    const run = { accepted: never, outcome: never, cancel: () => never } as unknown as RunControl;
    // As a client does whose prompt has a session of its own.
    Object.defineProperty(run, "sessionId", {
      get: () => {
        throw new ControlError("invalid", "The session is not known yet.");
      },
    });
    const control = { prompt: () => run } as unknown as RunPlace["control"];
    const place: RunPlace = { control, kind: "server", where: "there", options: " --home /h", close: async () => {} };
    const err = heardOn(process.stderr);
    const left = vi.spyOn(process, "exit").mockReturnValue(undefined as never);
    void runPrompt(async () => ({ prompt: { text: "go" }, session: undefined, place }), { ...WISH, clock });
    await vi.waitFor(() => expect(clock.pending).not.toEqual([]));
    process.emit("SIGINT", "SIGINT");
    process.emit("SIGINT", "SIGINT");
    await clock.advance(1_000);
    await vi.waitFor(() => expect(left).toHaveBeenCalledWith(EXIT_SIGNAL.SIGINT));
    expect(err()).toContain("The prompt may have been accepted and may go on: belay ps --home /h");
  });

  test("more often waits no longer, and loses no cancel", async () => {
    const { clock, answer, err, left, ended } = await slowToAnswer("here");
    for (let pressed = 0; pressed < 5; pressed += 1) process.emit("SIGINT", "SIGINT");
    expect(left).not.toHaveBeenCalled();
    await clock.advance(1_000);
    await vi.waitFor(() => expect(left).toHaveBeenCalledTimes(1));
    expect(err()).toMatch(/before the cancel was recorded: run_\S+ is taken up again/);
    answer.resolve();
    expect(await ended).toBe(EXIT_OUTCOME.cancelled);
  });

  /** A run of a server that answers nothing: neither the cancel nor the outcome, for longer than it is waited for. */
  async function silentServer(isThere: () => Promise<boolean>) {
    const clock = manualClock();
    const gone = () => Promise.reject(new ControlError("disconnected", "It does not answer."));
    const belay = await openBelay({ store: ":memory:", agent: (turn) => untilAborted(turn.signal).then(() => "") });
    const outcome = Promise.withResolvers<Outcome>();
    outcome.promise.catch(() => {});
    let isSilent = true;
    let sent = 0;
    const prompt = (...words: Parameters<typeof belay.prompt>): RunControl => {
      const run = belay.prompt(...words);
      const cancel = (...why: Parameters<typeof run.cancel>) => {
        sent += 1;
        return isSilent ? gone() : run.cancel(...why);
      };
      return Object.create(run, {
        ...{ accepted: { value: run.accepted }, sessionId: { value: run.sessionId }, cancel: { value: cancel } },
        outcome: { value: outcome.promise },
      });
    };
    const control: RunPlace["control"] = Object.create(belay, {
      ...{ prompt: { value: prompt }, session: { value: belay.session.bind(belay) } },
      run: { value: belay.run.bind(belay) },
    });
    const place: RunPlace = {
      ...{ control, kind: "server", where: "there", options: "", isThere },
      close: () => belay.close(),
    };
    const err = heardOn(process.stderr);
    const ended = runPrompt(async () => ({ prompt: { text: "go" }, session: undefined, place }), { ...WISH, clock });
    ended.catch(() => {});
    await vi.waitFor(() => expect(err()).toContain("there"));
    process.emit("SIGINT", "SIGINT");
    outcome.reject(new ControlError("disconnected", "It does not answer."));
    await vi.waitFor(() => expect(err()).toContain("cannot be asked for its outcome"));
    const answers = () => {
      isSilent = false;
    };
    return { clock, err, ended, answers, sent: () => sent };
  }

  test("G7: a cancel that has no answer is sent until the server answers, longer than it is waited for", async () => {
    const { clock, err, ended, answers, sent } = await silentServer(async () => true);
    await vi.waitFor(async () => {
      await clock.advance(1_000);
      expect(err()).toContain("The cancel has no answer yet. It is sent until it has; Ctrl-C again leaves.");
      expect(sent()).toBeGreaterThan(1);
    });
    answers();
    await vi.waitFor(async () => {
      await clock.advance(1_000);
      expect(err()).toMatch(/cancel: stopping/);
    });
    expect(await ended).toBe(EXIT_OUTCOME.cancelled);
  });

  test("a cancel is given up when no server is there any more", async () => {
    const { err, ended, sent } = await silentServer(async () => false);
    await expect(ended).rejects.toMatchObject({ code: "disconnected" });
    expect(sent()).toBe(1);
    expect(err()).toContain("The cancel was not answered");
  });
});
