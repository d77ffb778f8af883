// `belay run` on a server that misbehaves. The command as a user types it is tested in test/cli.
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

const REQUEST = {
  ...{ key: undefined, title: undefined, cwd: undefined, delivery: undefined, limitMs: undefined },
  ...({ form: "text", after: "outcome" } as const),
};

/** A real Belay whose session events pass through `events`. */
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

function recordedOn(stream: NodeJS.WriteStream): () => string {
  let text = "";
  vi.spyOn(stream, "write").mockImplementation((piece) => {
    text += String(piece);
    return true;
  });
  return () => text;
}

const untilAborted = (signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true }));

test("a stream that hangs after the outcome is reopened; no text is missing or repeated", async () => {
  const clock = manualClock();
  let opened = 0;
  const prepare = await seenThrough(async function* (own, { signal }) {
    opened += 1;
    for await (const event of own) {
      // The first stream hangs, like one in a retry pause.
      if (opened === 1 && event.type === "turn.requested") {
        await untilAborted(signal);
        return;
      }
      yield event;
    }
  });
  const [out, err] = [recordedOn(process.stdout), recordedOn(process.stderr)];
  const ended = runPrompt(prepare, { ...REQUEST, clock });
  await vi.waitFor(() => expect(clock.pending).not.toEqual([]));
  await clock.advance(500);
  expect(await ended).toBe(EXIT_OUTCOME.completed);
  expect(out()).toBe("all of it\n");
  expect(opened).toBe(2);
  expect(err()).not.toContain("could not be shown");
});

test("if the stream fails, the answer is read from the run", async () => {
  const clock = manualClock();
  const prepare = await seenThrough(async function* (own) {
    for await (const event of own) {
      if (event.seq > 0) throw new ControlError("forbidden", "This token may not read.");
      yield event;
    }
  });
  const [out, err] = [recordedOn(process.stdout), recordedOn(process.stderr)];
  expect(await runPrompt(prepare, { ...REQUEST, clock })).toBe(EXIT_OUTCOME.completed);
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
  const err = recordedOn(process.stderr);
  expect(await runPrompt(prepare, { ...REQUEST, clock })).toBe(EXIT_OUTCOME.completed);
  expect(exits).not.toHaveBeenCalled();
  expect(err()).toMatch(/run_\S+ completed/);
});

test("backpressure: events that a slow reader of stdout has not read are not fetched, and none is lost", async () => {
  const clock = manualClock();
  let fetched = 0;
  const prepare = await seenThrough(async function* (own) {
    for await (const event of own) {
      fetched += 1;
      yield event;
    }
  });
  const out = recordedOn(process.stdout);
  let isFull = true;
  const needsDrain = { configurable: true, get: () => isFull };
  Object.defineProperty(process.stdout, "writableNeedDrain", needsDrain);
  onTestFinished(() => void Reflect.deleteProperty(process.stdout, "writableNeedDrain"));
  const ended = runPrompt(prepare, { ...REQUEST, clock });
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
const unreadable = (run: RunControl): RunControl =>
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
  const { place, ...prepared } = await prepare();
  const control: RunPlace["control"] = Object.create(place.control, {
    prompt: {
      value: (...args: Parameters<typeof place.control.prompt>) => unreadable(place.control.prompt(...args)),
    },
  });
  const out = recordedOn(process.stdout);
  const ended = runPrompt(async () => ({ ...prepared, place: { ...place, control } }), { ...REQUEST, clock });
  await expect(ended).rejects.toMatchObject({ code: "disconnected", hint: expect.stringMatching(/belay show run_/) });
  expect(out()).toBe("");
});

test("a missing outcome is an error, even after output was shown", async () => {
  const clock = manualClock();
  const prepare = await seenThrough(async function* () {});
  const { place, ...prepared } = await prepare();
  const gone: Promise<Outcome> = Promise.reject(new ControlError("disconnected", "The server is gone."));
  gone.catch(() => {});
  const control: RunPlace["control"] = Object.create(place.control, {
    prompt: {
      value: (...args: Parameters<typeof place.control.prompt>) => {
        const run = place.control.prompt(...args);
        return Object.create(run, { accepted: { value: run.accepted }, outcome: { value: gone } });
      },
    },
  });
  recordedOn(process.stderr);
  await expect(
    runPrompt(async () => ({ ...prepared, place: { ...place, control } }), { ...REQUEST, clock }),
  ).rejects.toThrow("The server is gone.");
});

describe("Ctrl-C", () => {
  /** A run that lasts until it is stopped, on a server that delays its answer to a cancel. */
  async function slowToAnswer(kind: RunPlace["kind"]) {
    const clock = manualClock();
    const answer = Promise.withResolvers<void>();
    const belay = await openBelay({ store: ":memory:", agent: (turn) => untilAborted(turn.signal).then(() => "") });
    let stopFirst = (): Promise<unknown> => Promise.resolve();
    const prompt = (...args: Parameters<typeof belay.prompt>): RunControl => {
      const run = belay.prompt(...args);
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
    const err = recordedOn(process.stderr);
    const exited = vi.spyOn(process, "exit").mockReturnValue(undefined as never);
    const ended = runPrompt(async () => ({ prompt: { text: "go" }, session: undefined, place }), { ...REQUEST, clock });
    await vi.waitFor(() => expect(err()).toContain("there"));
    return { clock, answer, err, exited, ended, stopFirst: () => stopFirst() };
  }

  test("once: the receipt is printed even if the outcome arrives before it", async () => {
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
    ["server", /Exited at once\. The server is still stopping run_/],
    ["here", /Exited at once\. The stop of run_\S+ is recorded/],
  ] as const)("twice on a %s exits after the cancel was answered, and not before", async (kind, message) => {
    const { answer, err, exited, ended } = await slowToAnswer(kind);
    process.emit("SIGINT", "SIGINT");
    process.emit("SIGINT", "SIGINT");
    expect(exited).not.toHaveBeenCalled();
    answer.resolve();
    await vi.waitFor(() => expect(exited).toHaveBeenCalledWith(EXIT_SIGNAL.SIGINT));
    expect(err()).toMatch(message);
    expect(await ended).toBe(EXIT_OUTCOME.cancelled);
  });

  test("twice, without an answer to the cancel: exits in bounded time and says that the run may continue", async () => {
    const { clock, answer, err, exited, ended } = await slowToAnswer("server");
    process.emit("SIGINT", "SIGINT");
    process.emit("SIGINT", "SIGINT");
    await clock.advance(1_000);
    await vi.waitFor(() => expect(exited).toHaveBeenCalledWith(EXIT_SIGNAL.SIGINT));
    expect(err()).toMatch(/The cancel was not answered, so run_\S+ may still run: belay cancel ses_/);
    answer.resolve();
    await ended;
  });

  test("twice before the acceptance: exits with the signal's code and says that the prompt may run", async () => {
    const clock = manualClock();
    const never = new Promise<never>(() => {});
    const run = { accepted: never, outcome: never, cancel: () => never } as unknown as RunControl;
    // Like a client whose prompt creates a new session.
    Object.defineProperty(run, "sessionId", {
      get: () => {
        throw new ControlError("invalid", "The session is not known yet.");
      },
    });
    const control = { prompt: () => run } as unknown as RunPlace["control"];
    const place: RunPlace = { control, kind: "server", where: "there", options: " --home /h", close: async () => {} };
    const err = recordedOn(process.stderr);
    const exited = vi.spyOn(process, "exit").mockReturnValue(undefined as never);
    void runPrompt(async () => ({ prompt: { text: "go" }, session: undefined, place }), { ...REQUEST, clock });
    await vi.waitFor(() => expect(clock.pending).not.toEqual([]));
    process.emit("SIGINT", "SIGINT");
    process.emit("SIGINT", "SIGINT");
    await clock.advance(1_000);
    await vi.waitFor(() => expect(exited).toHaveBeenCalledWith(EXIT_SIGNAL.SIGINT));
    expect(err()).toContain("The prompt may have been accepted and may run: belay ps --home /h");
  });

  test("further presses neither prolong the wait nor lose the cancel", async () => {
    const { clock, answer, err, exited, ended } = await slowToAnswer("here");
    for (let pressed = 0; pressed < 5; pressed += 1) process.emit("SIGINT", "SIGINT");
    expect(exited).not.toHaveBeenCalled();
    await clock.advance(1_000);
    await vi.waitFor(() => expect(exited).toHaveBeenCalledTimes(1));
    expect(err()).toMatch(/before the cancel was recorded: run_\S+ resumes/);
    answer.resolve();
    expect(await ended).toBe(EXIT_OUTCOME.cancelled);
  });

  /** A run on a server that answers neither the cancel nor the outcome within the patience of the connection. */
  async function silentServer(isThere: () => Promise<boolean>) {
    const clock = manualClock();
    const gone = () => Promise.reject(new ControlError("disconnected", "It does not answer."));
    const belay = await openBelay({ store: ":memory:", agent: (turn) => untilAborted(turn.signal).then(() => "") });
    const outcome = Promise.withResolvers<Outcome>();
    outcome.promise.catch(() => {});
    let isSilent = true;
    let sent = 0;
    const prompt = (...args: Parameters<typeof belay.prompt>): RunControl => {
      const run = belay.prompt(...args);
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
    const err = recordedOn(process.stderr);
    const ended = runPrompt(async () => ({ prompt: { text: "go" }, session: undefined, place }), { ...REQUEST, clock });
    ended.catch(() => {});
    await vi.waitFor(() => expect(err()).toContain("there"));
    process.emit("SIGINT", "SIGINT");
    outcome.reject(new ControlError("disconnected", "It does not answer."));
    await vi.waitFor(() => expect(err()).toMatch(/The outcome of run_\S+ cannot be read/));
    const answers = () => {
      isSilent = false;
    };
    return { clock, err, ended, answers, sent: () => sent };
  }

  test("G7: an unanswered cancel is retried until the server answers, beyond the connection's patience", async () => {
    const { clock, err, ended, answers, sent } = await silentServer(async () => true);
    await vi.waitFor(async () => {
      await clock.advance(1_000);
      expect(err()).toContain("The cancel has no answer yet. It is sent again until it has; Ctrl-C again exits.");
      expect(sent()).toBeGreaterThan(1);
    });
    answers();
    await vi.waitFor(async () => {
      await clock.advance(1_000);
      expect(err()).toMatch(/cancel: stopping/);
    });
    expect(await ended).toBe(EXIT_OUTCOME.cancelled);
  });

  test("the retries of a cancel stop when the server is gone", async () => {
    const { err, ended, sent } = await silentServer(async () => false);
    await expect(ended).rejects.toMatchObject({ code: "disconnected" });
    expect(sent()).toBe(1);
    expect(err()).toContain("The cancel was not answered");
  });
});
