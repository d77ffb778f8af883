// Tests of the policy: given these commands, when this command is decided, then exactly these events follow, and this
// is the answer.
//
// Needs no clock, store or promise. Failures are plain assertion errors, for any test runner.
import assert from "node:assert/strict";
import type { Answer, Command } from "../core/model/command.ts";
import type { Event } from "../core/model/event.ts";
import type { SessionId } from "../core/model/ids.ts";
import { emptyLane, evolve, type Lane } from "../core/model/lane.ts";
import { decide } from "../core/policy/decide.ts";

const SESSION: SessionId = "ses_1";

/** A session that was created (its first event) and then received these commands in this order. */
export function given(...commands: readonly Command[]): Given {
  return givenNoSession().and({ type: "create" }, ...commands);
}

/** An empty log: the session was not created. */
export function givenNoSession(): Given {
  return new Given(emptyLane(SESSION), []);
}

/** The commands so far. Each `and` returns a new object, so tests can share a beginning. */
export class Given {
  /** The state after the commands. */
  readonly lane: Lane;
  /** The log after the commands. */
  readonly events: readonly Event[];

  constructor(lane: Lane, events: readonly Event[]) {
    this.lane = lane;
    this.events = events;
  }

  /** Adds commands. A command that changes nothing is a mistake in the test, and fails it. */
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

  /** The command under test. Nothing is checked until `then` or `answers` states what is expected. */
  when<C extends Command>(command: C): When<C> {
    return new When(this, command);
  }
}

class When<C extends Command> {
  readonly #given: Given;
  readonly #command: C;

  constructor(given: Given, command: C) {
    this.#given = given;
    this.#command = command;
  }

  /** Expects exactly these events; without arguments, none. */
  // biome-ignore lint/suspicious/noThenProperty: it reads as given, when, then, and is never awaited.
  then(...expected: readonly Event[]): this {
    assert.deepEqual(decide(this.#given.lane, this.#command).events, expected);
    return this;
  }

  /** Expects exactly this answer to the caller. */
  answers(expected: Answer<C>): this {
    assert.deepEqual(decide(this.#given.lane, this.#command).answer, expected);
    return this;
  }

  /** The commands so far including this one, to continue from. */
  get after(): Given {
    return this.#given.and(this.#command);
  }
}

const describe = (command: Command): string => JSON.stringify(command);
