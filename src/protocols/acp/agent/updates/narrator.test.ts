import { describe, expect, test } from "vitest";
import type { Delta } from "../../../../core/model/delta.ts";
import type { Event, Recorded } from "../../../../core/model/event.ts";
import type { SessionControl } from "../../../../ports/control.ts";
import { openBelay } from "../../../../sdk/belay.ts";
import { Narrator } from "./narrator.ts";
import type { Update } from "./update.ts";

const RUN = "run_1";
const TURN = "turn_1.1";
const CALL = "call_1.1";

let seq = 0;
function recorded(event: Event): Recorded {
  seq += 1;
  return { ...event, seq, at: 0 };
}

const delta = (from: number, text: string): Delta => ({ type: "delta", runId: RUN, turnId: TURN, from, text });

/** All updates for these events, from a new narrator. */
function told(...events: readonly (Event | Delta)[]): readonly Update[] {
  const narrator = new Narrator();
  return events.flatMap((event) =>
    narrator.updatesFor(
      event.type === "delta" || event.type === "progress" || event.type === "output" ? event : recorded(event),
    ),
  );
}

const accepted: Event = { type: "run.accepted", runId: RUN, prompt: { text: "do it" }, delivery: "queue" };
const started: Event = { type: "run.started", runId: RUN };
const turn: Event = { type: "turn.requested", runId: RUN, turnId: TURN };
const done = { kind: "completed" } as const;
const settled: Event = { type: "run.settled", runId: RUN, outcome: done };
const turnSettled = (text: string): Event => ({
  ...{ type: "turn.settled", runId: RUN, turnId: TURN, outcome: done, next: "end", text },
});
const called: Event = { type: "call.requested", runId: RUN, callId: CALL, name: "shell", input: { command: "ls" } };
const callSettled: Event = { type: "call.settled", runId: RUN, callId: CALL, outcome: done, result: "ok" };

const words = (tellings: readonly Update[]): string =>
  tellings.map((one) => (one.type === "said" || one.type === "replaced" ? one.text : "")).join("");

describe("a run", () => {
  test("begins with its last edited prompt, and ends", () => {
    const edited: Event = { type: "run.edited", runId: RUN, prompt: { text: "do that" } };
    expect(told(accepted, edited, started, settled)).toEqual([
      { type: "began", runId: RUN, prompt: "do that" },
      { type: "ended", runId: RUN, outcome: done, usage: undefined, begun: true },
    ]);
  });

  test("that never began has only an end", () => {
    expect(told(accepted, settled)).toMatchObject([{ type: "ended", begun: false }]);
  });

  test("started by a background result has no prompt", () => {
    expect(told({ ...accepted, wake: true }, started)).toEqual([{ type: "began", runId: RUN, prompt: undefined }]);
  });

  test("sums the usage of its turns", () => {
    const end = (estimated: boolean): Event => ({
      ...{ type: "turn.settled", runId: RUN, turnId: TURN, outcome: done, next: "end" },
      usage: { inputTokens: 2, outputTokens: 3, estimated },
    });
    expect(told(accepted, started, end(false), end(true), settled).at(-1)).toMatchObject({
      usage: { inputTokens: 4, outputTokens: 6, estimated: true },
    });
  });
});

describe("text", () => {
  test.each<readonly [string, readonly (Event | Delta)[]]>([
    ["as pieces", [turn, delta(0, "one "), delta(4, "two"), turnSettled("one two")]],
    [
      "as logged pieces",
      [turn, { type: "turn.extended", runId: RUN, turnId: TURN, text: "one " }, turnSettled("one two")],
    ],
    [
      "as both",
      [
        turn,
        delta(0, "one "),
        { type: "turn.extended", runId: RUN, turnId: TURN, text: "one " },
        delta(4, "two"),
        turnSettled("one two"),
      ],
    ],
    ["as a whole", [turn, turnSettled("one two")]],
    ["with a piece missing", [turn, delta(0, "on"), delta(4, "two"), turnSettled("one two")]],
  ])("is sent once: %s", (_, events) => {
    expect(words(told(accepted, started, ...events))).toBe("one two");
  });

  test("a different text at the end replaces the text sent before", () => {
    expect(told(accepted, started, turn, delta(0, "draft"), turnSettled("final")).at(-1)).toMatchObject({
      ...{ type: "replaced", messageId: `${TURN}.m1`, text: "final" },
    });
  });

  test("after a call is another message", () => {
    const ids = told(accepted, started, turn, delta(0, "a"), called, callSettled, delta(1, "b")).flatMap((one) =>
      one.type === "said" ? [one.messageId] : [],
    );
    expect(ids).toEqual([`${TURN}.m1`, `${TURN}.m2`]);
  });
});

describe("a question", () => {
  const about = { kind: "approval", name: "shell", input: null, digest: "d", scope: "shell" } as const;
  const asked: Event = { type: "question.asked", runId: RUN, questionId: "ask_1.1", owner: CALL, about };
  const ending = (kind: "allowed" | "denied"): Event => ({
    ...{ type: "question.settled", runId: RUN, questionId: "ask_1.1", ending: { kind } },
  });

  test("of a call: the call waits, and continues when it is allowed", () => {
    const tellings = told(accepted, started, called, asked, ending("allowed"));
    expect(tellings.slice(2).map((one) => (one.type === "call-phase" ? one.phase : one.type))).toEqual([
      ...["waits", "asked", "answered", "continues"],
    ]);
  });

  test("that is denied: the call does not continue", () => {
    const tellings = told(accepted, started, called, asked, ending("denied"));
    expect(tellings.map(({ type }) => type)).toEqual(["began", "call", "call-phase", "asked", "answered"]);
  });

  test("keeps the session waiting, until the end of its run at the latest", () => {
    const narrator = new Narrator();
    const states = [accepted, started, called, asked, settled].map((event) => {
      narrator.updatesFor(recorded(event));
      return narrator.state;
    });
    expect(states).toEqual(["idle", "running", "running", "waiting", "idle"]);
  });
});

describe("a process", () => {
  test("of a call is shown with the call and its other processes", () => {
    const process = (id: number): Event => ({
      ...{
        type: "process.requested",
        processId: `proc_1.${id}`,
        owner: CALL,
        command: ["ls", "-l"],
        feedback: "silent",
      },
    });
    const [, , first, second, end] = told(accepted, started, called, process(1), process(2), callSettled).slice(-5);
    expect(first).toMatchObject({ type: "process", command: "ls -l", call: { callId: CALL, processes: ["proc_1.1"] } });
    expect(second).toMatchObject({ call: { processes: ["proc_1.1", "proc_1.2"] } });
    expect(end).toMatchObject({ type: "call-ended", processes: ["proc_1.1", "proc_1.2"] });
  });

  test("in the background belongs to no call", () => {
    const process: Event = {
      type: "process.requested",
      processId: "proc_1.1",
      owner: "ses_1",
      command: "ls",
      feedback: "silent",
    };
    expect(told(process)).toMatchObject([{ type: "process", command: "ls", call: undefined }]);
  });
});

test("a gap in the history is reported", () => {
  expect(new Narrator().updatesFor({ type: "gap", from: 1, to: 5 })).toMatchObject([{ type: "notice" }]);
});

/** The events of a session from its start up to its head. */
async function narrated(session: SessionControl, deltas: "with" | "without"): Promise<readonly Update[]> {
  const { head } = await session.row();
  const narrator = new Narrator();
  const tellings: Update[] = [];
  for await (const event of session.events({ deltas })) {
    tellings.push(...narrator.updatesFor(event));
    if ("seq" in event && event.seq >= head) break;
  }
  return tellings;
}

test("a replay gives the same updates: the same text in the same messages, the same calls and ends", async () => {
  const belay = await openBelay({
    store: ":memory:",
    agent: async (given) => {
      given.emit("one ");
      await given.call("shell", { command: "ls" }, () => "ok");
      given.emit("two ");
      given.emit("three");
    },
  });
  const session = await belay.createSession();
  await session.prompt("do it").outcome;
  const again = await narrated(session, "without");
  expect(words(again)).toBe("one two three");
  expect(again.map(({ type }) => type)).toEqual(["began", "said", "call", "call-ended", "said", "ended"]);
  expect(await narrated(session, "with")).toEqual(again);
  await belay.close();
});
