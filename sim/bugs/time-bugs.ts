// Mistakes about time, about whoever follows, and about what is left behind.
import type { Focus } from "../flavour.ts";
import type { Bug } from "./bug.ts";

const ATTENDANCE = "src/engine/attendance.ts";
const AWAITED = "src/engine/awaited-outcome.ts";
const ENGINE = "src/engine/engine.ts";
const FOLLOW = "src/engine/follow.ts";
const LIMITS = "src/engine/run-limits.ts";

type Place = readonly [file: string, find: string, replace: string];

const about =
  (focus: Focus) =>
  (name: string, sentence: string, ...[file, find, replace]: Place): Bug => ({
    ...{ name, about: sentence, edits: [{ file, find, replace }] },
    ...(focus === undefined ? {} : { focus }),
  });
const ofTime = about("time");
const ofFollowers = about("followers");
const ofAll = about(undefined);

const TIME: readonly Bug[] = [
  ofTime(
    "limit-outlives-the-lane",
    "The limit of a run that was let go of ends the run when it has been taken up again.",
    ENGINE,
    "    this.#limits.leave(lane.id);\n",
    "",
  ),
  ofTime(
    "limit-begun-for-another",
    "What is recorded after a lane was let go of begins a limit that nobody takes back.",
    LIMITS,
    "if (this.#limitMs === undefined || lane.epoch === undefined) return;",
    "if (this.#limitMs === undefined) return;",
  ),
  ofTime(
    "limit-lost-in-the-crash",
    "A run that is taken up after a crash may take as long as it likes.",
    LIMITS,
    'if (event.type === "run.started" || event.type === "run.recovered")',
    'if (event.type === "run.started")',
  ),
  {
    name: "lease-by-the-wall",
    about: "How long a lease has not been renewed is read off the wall clock.",
    focus: "time",
    edits: [
      {
        file: ATTENDANCE,
        find: "this.#renewed(this.#parts.clock.elapsed());\n    this.#renewLater();",
        replace: "this.#renewed(this.#parts.clock.now());\n    this.#renewLater();",
      },
      { file: ATTENDANCE, find: "const asked = clock.elapsed();", replace: "const asked = clock.now();" },
      { file: ATTENDANCE, find: "HOLD_MS - clock.elapsed());", replace: "HOLD_MS - clock.now());" },
      {
        file: ATTENDANCE,
        find: "from now on.\n    this.#renewed(this.#parts.clock.elapsed());",
        replace: "from now on.\n    this.#renewed(this.#parts.clock.now());",
      },
    ],
  },
  ofTime(
    "lease-counted-from-the-answer",
    "A lease counts from when the store has answered, which may have been asleep.",
    ATTENDANCE,
    "this.#renewed(asked);",
    "this.#renewed(clock.elapsed());",
  ),
  ofTime(
    "sleep-not-noticed",
    "After a night with the lid closed the worker renews its leases, and goes on as if it had them all the time.",
    ATTENDANCE,
    "    const asked = clock.elapsed();\n    this.#limit();\n",
    "    const asked = clock.elapsed();\n    this.#renewed(asked);\n",
  ),
  ofTime(
    "question-expires-early",
    "A question is closed before its time is up.",
    "src/engine/questions.ts",
    "this.#parts.clock.after(deadlineMs, () =>",
    "this.#parts.clock.after(Math.min(deadlineMs, 2_000), () =>",
  ),
  ofTime(
    "grace-cut-short",
    "What is asked to stop is given up in the middle of its grace.",
    "src/engine/drive.ts",
    "this.#clock.after(this.#graceFor(lane, work), ",
    "this.#clock.after(this.#graceFor(lane, work) / 2, ",
  ),
  ofTime(
    "call-limit-halved",
    "A call is stopped before the time that it was given.",
    "src/engine/live-call.ts",
    "return this.desk.clock.after(limitMs, () =>",
    "return this.desk.clock.after(limitMs / 2, () =>",
  ),
];

const FOLLOWERS: readonly Bug[] = [
  ofFollowers(
    "gap-told-twice",
    "Whoever comes back below what is kept is told so twice.",
    FOLLOW,
    'yield [{ type: "gap", from: cursor + 1, to: gapTo }];',
    'for (const _ of [1, 2]) yield [{ type: "gap", from: cursor + 1, to: gapTo }];',
  ),
  ofFollowers(
    "gap-told-again-at-the-next-page",
    "The gap is announced, and the reader is left before it.",
    FOLLOW,
    "cursor = page.events.at(-1)?.seq ?? cursor;",
    "cursor = page.gapTo === undefined ? (page.events.at(-1)?.seq ?? cursor) : page.gapTo;",
  ),
  ofFollowers(
    "event-skipped-at-the-page-edge",
    "The first event of the next page is left out.",
    FOLLOW,
    "const page = await store.read(session, { after: cursor, limit: PAGE_EVENTS_MAX });",
    "const page = await store.read(session, { after: cursor + (cursor > 2 ? 1 : 0), limit: PAGE_EVENTS_MAX });",
  ),
  ofFollowers(
    "short-page-taken-for-the-end",
    "A page with fewer events than it could have is taken for the last one.",
    FOLLOW,
    "caughtUp = page.events.length === 0;",
    "caughtUp = page.events.length < PAGE_EVENTS_MAX;",
  ),
  ofFollowers(
    "joined-in-the-middle",
    "Whoever joins a turn in its middle is told its beginning as if it came behind it.",
    "src/engine/live-lane.ts",
    "text: owner.text, from: 0 }",
    "text: owner.text, from: owner.text.length }",
  ),
  ofFollowers(
    "feed-left-open",
    "A session that somebody has followed counts as followed for ever.",
    FOLLOW,
    "    feeds.close(session);\n",
    "",
  ),
  ofFollowers(
    "follower-listens-for-ever",
    "Whoever has left is still listened for.",
    FOLLOW,
    "    sleeper.leave();\n",
    "",
  ),
  ofFollowers(
    "transcript-with-a-hole",
    "What retention removes while a conversation is read is missing in its middle.",
    "src/engine/live-transcript.ts",
    "    this.#book = new Book();\n    this.#cursor = gapTo;",
    "    this.#cursor = gapTo;",
  ),
  ofAll(
    "catch-up-ends-at-a-short-page",
    "What others wrote is read up to the first page that is not full.",
    "src/engine/commit.ts",
    "      news.push(...events);\n",
    "      news.push(...events);\n      if (events.length < PAGE_EVENTS_MAX) break;\n",
  ),
];

const LEFT: readonly Bug[] = [
  ofAll(
    "wait-kept-after-trouble",
    "Whoever asks for an outcome while the store is in trouble is waited for, and waits no more.",
    AWAITED,
    "  } catch (error) {\n    takeBack();\n    throw error;",
    "  } catch (error) {\n    throw error;",
  ),
  ofAll(
    "run-kept-in-mind",
    "A run that has ended is still thought to be going on.",
    ENGINE,
    '      if (event.type === "run.settled") this.lanes.moveOut(event.runId);\n',
    "",
  ),
  ofAll(
    "caught-up-run-without-a-home",
    "A cancel of a run whose acceptance was never answered waits for the store.",
    ENGINE,
    '      if (event.type === "run.accepted" && lane.phase !== "gone") this.lanes.moveIn(event.runId, lane.id);\n',
    "",
  ),
  ofAll(
    "cancel-behind-a-key",
    "A cancel waits with what stands before it for a key that is looked up.",
    "src/engine/cancels.ts",
    "const waits = lane.pumping || lane.doubt || lane.mailbox.length > 0;",
    "const waits = false;",
  ),
  ofAll(
    "busy-without-a-run",
    "A session says that it is busy, and there is nothing left to do.",
    "src/engine/explain.ts",
    "busy: state.live !== undefined || state.queue.length > 0,",
    "busy: state.live !== undefined || state.queue.length > 0 || state.inbox.length > 0,",
  ),
];

export const TIME_BUGS: readonly Bug[] = [...TIME, ...FOLLOWERS, ...LEFT];
