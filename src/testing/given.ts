// Given what was done, when this is asked, then exactly these facts follow, and this is the answer.
//
// Tests of the policy without a clock, a store or a promise. Failures are plain assertion errors, for any test runner.
import assert from "node:assert/strict";
import type { Answer, Command } from "../core/model/command.ts";
import type { Event } from "../core/model/event.ts";
import type { SessionId } from "../core/model/ids.ts";
import { emptyLane, evolve, type Lane } from "../core/model/lane.ts";
import { decide } from "../core/policy/decide.ts";

const SESSION: SessionId = "ses_1";

/** A session that was created (its first event), and then told these things, in this order. */
export function given(...commands: readonly Command[]): Given {
  return givenNoSession().and({ type: "create" }, ...commands);
}

/** An empty log: nobody has created the session. */
export function givenNoSession(): Given {
  return new Given(emptyLane(SESSION), []);
}

/** What was done so far. Each `and` is a new one; a beginning may be shared by many tests. */
export class Given {
  /** The state that follows from what was done. */
  readonly lane: Lane;
  /** The log that follows from what was done. */
  readonly events: readonly Event[];

  constructor(lane: Lane, events: readonly Event[]) {
    this.lane = lane;
    this.events = events;
  }

  /** What was done next. A command that changed nothing is no part of a past, and a mistake in the test. */
  and(...commands: readonly Command[]): Given {
    let { lane } = this;
    const events = [...this.events];
    for (const command of commands) {
      const decided = decide(lane, command);
      const { memos = [] } = decided;
      assert.notEqual(decided.events.length + memos.length, 0, `given ${describe(command)}: it changed nothing`);
      lane = decided.events.reduce(evolve, lane);
      lane = { ...lane, memos: lane.memos.with(memos) };
      events.push(...decided.events);
    }
    return new Given(lane, events);
  }

  /** What is asked now. Nothing is checked until `then` or `answers` says what is expected. */
  when<C extends Command>(command: C): When<C> {
    return new When(this, command);
  }
}

class When<C extends Command> {
  readonly #given: Given;
  readonly #command: C;

  constructor(past: Given, command: C) {
    this.#given = past;
    this.#command = command;
  }

  /** Exactly these facts follow; none, if none are named. */
  // biome-ignore lint/suspicious/noThenProperty: it reads as given, when, then, and nobody awaits it.
  then(...expected: readonly Event[]): this {
    assert.deepEqual(decide(this.#given.lane, this.#command).events, expected);
    return this;
  }

  /** Exactly this is what the asker is told. */
  answers(expected: Answer<C>): this {
    assert.deepEqual(decide(this.#given.lane, this.#command).answer, expected);
    return this;
  }

  /** The past with this command in it, to go on from. */
  get after(): Given {
    return this.#given.and(this.#command);
  }
}

const describe = (command: Command): string => JSON.stringify(command);
