import { expect, test } from "vitest";
import type { Gap } from "../../core/model/delta.ts";
import type { Recorded } from "../../core/model/event.ts";
import { PIECE_CHARS_MAX } from "../limits.ts";
import { runBatches, sessionBatches } from "./event-batches.ts";
import { EventTexts } from "./event-text.ts";

const extended = (seq: number, text: string, runId: `run_${string}` = "run_a"): Recorded => ({
  seq,
  at: 0,
  type: "turn.extended",
  runId,
  turnId: "turn_a.1",
  text,
});
const settled = (seq: number): Recorded => ({
  seq,
  at: 0,
  type: "run.settled",
  runId: "run_a",
  outcome: { kind: "completed" },
});

const runA = (settledAt?: number) => ({ id: "run_a", settledAt: async () => settledAt }) as const;

/** All pieces, and the return value of the generator. */
async function all(pieces: AsyncGenerator<string, "complete" | "cut">): Promise<{ pieces: string[]; end: string }> {
  const found: string[] = [];
  for (;;) {
    const step = await pieces.next();
    if (step.done === true) return { pieces: found, end: step.value };
    found.push(step.value);
  }
}

async function* pages(...given: readonly (readonly (Recorded | Gap)[])[]): AsyncGenerator<readonly (Recorded | Gap)[]> {
  yield* given;
}

test("the events of one page are sent in one piece, each with its id", async () => {
  const { pieces, end } = await all(sessionBatches(pages([extended(1, "a"), extended(2, "b")]), new EventTexts()));
  expect(pieces).toHaveLength(1);
  expect(pieces[0]).toMatch(
    /^id: 1\nevent: turn\.extended\ndata: \{.*\}\n\nid: 2\nevent: turn\.extended\ndata: \{.*\}\n\n$/,
  );
  expect(end).toBe("cut");
});

test("an event is encoded once for all readers", () => {
  const texts = new EventTexts();
  let written = 0;
  const event = Object.assign(extended(1, "a"), {
    toJSON() {
      written += 1;
      return { seq: 1 };
    },
  });
  expect(texts.of(event)).toBe(texts.of(event));
  texts.feedEvent({ type: "event", cursor: "c.1", sessionId: "ses_a", event });
  expect(written).toBe(1);
});

test("the feed of all sessions contains the cursor, the session and the event", () => {
  const event = extended(7, "a");
  const text = new EventTexts().feedEvent({ type: "event", cursor: "w.3", sessionId: "ses_a", event });
  const [id, type, data] = text.split("\n");
  expect([id, type]).toEqual(["id: w.3", "event: turn.extended"]);
  expect(JSON.parse(data?.slice("data: ".length) ?? "")).toEqual({ cursor: "w.3", sessionId: "ses_a", event });
});

test("a long page is sent in several pieces, a long event in slices, and no character is split", async () => {
  // Only surrogate pairs, with one unit before them, so that some slice boundary is in the middle of a pair.
  const long = `x${"😀".repeat(PIECE_CHARS_MAX)}`;
  const page = [extended(1, "short"), extended(2, long), extended(3, `${long}y`), extended(4, "short")];
  const texts = new EventTexts();
  const { pieces } = await all(sessionBatches(pages(page), texts));
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(PIECE_CHARS_MAX);
  expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
  expect(pieces.join("")).toBe(page.map((event) => texts.of(event)).join(""));
  expect(pieces.length).toBeGreaterThan(4);
});

test("the stream of a run has only its own events, up to its outcome", async () => {
  const page = [extended(1, "mine"), extended(2, "not mine", "run_b"), settled(3), extended(4, "after")];
  const { pieces, end } = await all(runBatches(pages(page, [extended(5, "later")]), new EventTexts(), runA()));
  expect(pieces.join("").match(/^id: \d+/gm)).toEqual(["id: 1", "id: 3"]);
  expect(end).toBe("complete");
});

test("the stream of a run whose log ends before its outcome is cut", async () => {
  const { end } = await all(runBatches(pages([extended(1, "mine")]), new EventTexts(), runA()));
  expect(end).toBe("cut");
});

test("G8: the stream of a run whose outcome was removed ends with the gap", async () => {
  const gap = { type: "gap", from: 1, to: 9 } as const;
  const endless = (): AsyncGenerator<readonly (Recorded | Gap)[]> => pages([gap], [extended(10, "another's", "run_b")]);
  const over = await all(runBatches(endless(), new EventTexts(), runA(9)));
  expect(over).toEqual({ pieces: [expect.stringContaining("event: gap")], end: "complete" });
  for (const later of [10, undefined]) {
    expect((await all(runBatches(endless(), new EventTexts(), runA(later)))).end).toBe("cut");
  }
});

test("G35: no stream contains the server's directory with the output of a process", async () => {
  const output = { bytes: 1, stdoutBytes: 1, stderrBytes: 0, tail: "x", dir: "/srv/belay.db.processes/output" };
  const event: Recorded = {
    seq: 1,
    at: 0,
    type: "process.settled",
    processId: "proc_a.1",
    outcome: { kind: "completed" },
    output,
  };
  const texts = new EventTexts();
  const frames = [texts.of(event), texts.feedEvent({ type: "event", cursor: "c", sessionId: "ses_a", event })];
  for (const text of frames) {
    expect(text).not.toContain("/srv");
    expect(text).toContain('"tail":"x"');
  }
  expect(event.output).toEqual(output);
});
