// What the tests of the only writer share: a writer with one lane, and all that it says to the rest of the house.
import type { Answer, Command, CommandOf } from "../src/core/command.ts";
import type { RunId } from "../src/core/ids.ts";
import type { Lane } from "../src/core/lane.ts";
import { Commit } from "../src/engine/commit.ts";
import { LiveLane } from "../src/engine/live-lane.ts";
import type { Batch, Notice } from "../src/ports.ts";
import { MemoryStore } from "../src/store/memory/memory-store.ts";
import { type FaultyStore, faultyStore } from "../src/testing/faulty-store.ts";
import { type ManualClock, manualClock } from "../src/testing/manual-clock.ts";

/** Several may share a clock and a store. */
export class Office {
  readonly clock: ManualClock;
  readonly log: MemoryStore;
  /** The way to the log, and what goes wrong on it. */
  readonly store: FaultyStore;
  readonly commit: Commit;
  readonly lane = readyLane();
  readonly told: string[] = [];
  /** What has come to the log. */
  readonly sent: Batch[] = [];
  readonly notices: Notice[] = [];

  constructor(other?: Office) {
    this.clock = other?.clock ?? manualClock();
    this.log = other?.log ?? new MemoryStore({ clock: this.clock });
    this.store = other?.store ?? faultyStore(this.log);
    const append = this.log.append.bind(this.log);
    this.log.append = (batch) => {
      this.sent.push(batch);
      return append(batch);
    };
    const tell = (what: string): void => void this.told.push(what);
    this.commit = new Commit({
      ...{ store: this.store, clock: this.clock, notify: (notice) => void this.notices.push(notice) },
      consequences: {
        decided: (_, { type }) => tell(`decided ${type}`),
        recorded: (_, events) => tell(["recorded", ...events.map(({ type }) => type)].join(" ")),
        caughtUp: ({ decided }) => tell(`caught up, with ${waiting(decided) || "nobody"}`),
        rested: () => tell("rested"),
        fenced: () => tell("fenced"),
      },
    });
  }

  submit<C extends Command>(command: C, prepare?: (command: C) => Promise<C>): Promise<Answer<C>> {
    return this.commit.submit(this.lane, command, prepare);
  }

  /** A session, if there is none yet, with these runs in its queue. */
  async begin(...runs: readonly RunId[]): Promise<this> {
    await Promise.all([this.submit({ type: "create" }), ...runs.map((run) => this.submit(accept(run)))]);
    this.told.length = 0;
    return this;
  }

  /** The types of all that is in the log. */
  async types(): Promise<readonly string[]> {
    const { events } = await this.log.read(this.lane.id, { after: 0, limit: 1_000 });
    return events.map(({ type }) => type);
  }
}

export function readyLane(): LiveLane {
  const lane = new LiveLane("ses_1");
  lane.phase = "ready";
  return lane;
}

/** Whoever waits in a lane's queue, next first. */
export const waiting = ({ queue }: Lane): string => queue.map(({ id }) => id).join(" ");

export const accept = (runId: RunId): CommandOf<"accept"> => ({
  ...{ type: "accept", runId, prompt: { text: runId }, delivery: "queue" },
});
export const keyed = (runId: RunId): CommandOf<"accept"> => ({ ...accept(runId), key: runId, content: runId });
export const edit = (runId: RunId): CommandOf<"edit"> => ({ type: "edit", runId, prompt: { text: "edited" } });
export const cancel = (runId: RunId): CommandOf<"cancel-run"> => ({
  ...{ type: "cancel-run", runId, reason: { kind: "user" } },
});

/** What has become of a promise by now, for whoever must not wait for it. */
export function watch(promise: Promise<unknown>): { is: "waiting" | "answered" | "refused"; value: unknown } {
  const watched: ReturnType<typeof watch> = { is: "waiting", value: undefined };
  const note = (is: "answered" | "refused") => (value: unknown) => Object.assign(watched, { is, value });
  promise.then(note("answered"), note("refused"));
  return watched;
}
