// Accepts prompts and sessions.
//
// Invariants
// 1. A prompt is registered in the tick of the call: a later request, even in the same tick, comes after it.
// 2. It is answered when its acceptance is durable.
import { canonical } from "../core/canonical.ts";
import { ControlError } from "../core/errors.ts";
import type { Accepted, CommandOf, Created, Refused } from "../core/model/command.ts";
import type { RunId, SessionId } from "../core/model/ids.ts";
import type { Delivery, Prompt } from "../core/model/prompt.ts";
import { repeat } from "../core/policy/decide.ts";
import type { Ids } from "../ports/clock.ts";
import type { Store } from "../ports/store.ts";
import type { Commit } from "./log/commit.ts";
import type { SessionRegistry } from "./log/session-registry.ts";
import type { SessionState } from "./log/session-state.ts";
import { closing } from "./shutdown-errors.ts";

export interface PromptRequest {
  readonly prompt: Prompt;
  readonly delivery: Delivery;
  readonly key: string | undefined;
  /** The user that sent it, if several share one Belay. */
  readonly actor?: string;
  /**
   * The options of its session, if the session is requested together with it: with the same key they must be the same.
   */
  readonly made?: Made;
}

export interface Prompted {
  readonly runId: RunId;
  readonly accepted: Promise<Accepted>;
}

/** A prompt, in a session that may have to be created first. */
export interface Begun extends Prompted {
  readonly sessionId: SessionId;
}

/** The options of a new session. */
export type Made = Pick<CommandOf<"create">, "title" | "cwd">;

interface Parts {
  readonly store: Store;
  readonly ids: Ids;
  readonly commit: Commit;
  readonly lanes: SessionRegistry;
  readonly open: () => boolean;
  /** A session was created and is driven by this worker; or its claim failed, but may have been made. */
  readonly claimed: (lane: SessionState) => void;
  readonly unclaimed: (session: SessionId) => void;
}

export class Acceptance {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async session(session: SessionId | undefined, made: Made): Promise<{ id: SessionId; created: Created }> {
    if (!this.#parts.open()) throw closing();
    const lane = this.#laneOf(session);
    return { id: lane.id, created: await this.#create(lane, made) };
  }

  /**
   * Creates a session with its first prompt; both are recorded together. If the session exists, the prompt joins it.
   */
  promptIn(session: SessionId | undefined, made: Made, asked: PromptRequest): Begun {
    if (!this.#parts.open()) return { sessionId: session ?? this.newSession(), ...this.#refused() };
    const lane = this.#laneOf(session);
    // Refused together with the prompt, whose error is returned.
    this.#create(lane, made).catch(() => {});
    return { sessionId: lane.id, ...this.prompt(lane.id, { ...asked, made }) };
  }

  prompt(session: SessionId, asked: PromptRequest): Prompted {
    const { ids, commit, lanes } = this.#parts;
    if (!this.#parts.open()) return this.#refused();
    const runId = ids.make("run_") as RunId;
    lanes.indexRun(runId, session);
    const { prompt, delivery, key, actor } = asked;
    const bound = key === undefined ? undefined : { key, content: this.#content(asked) };
    const command: CommandOf<"accept"> = {
      type: "accept",
      runId,
      prompt,
      delivery,
      ...(actor === undefined ? {} : { actor }),
      ...bound, // @fault key-not-recorded
    };
    const lane = lanes.get(session);
    const accepted = commit.submit(lane, command).then(
      (answer) => this.#accepted(lane, command, answer),
      (error: unknown) => {
        lanes.refused(lane, runId); // @fault refused-run-keeps-its-home
        throw error;
      },
    );
    return { runId, accepted };
  }

  /** An id that no session has. */
  newSession(): SessionId {
    return this.#parts.ids.make("ses_") as SessionId;
  }

  #refused(): Prompted {
    return { runId: this.#parts.ids.make("run_") as RunId, accepted: Promise.reject(closing()) };
  }

  #laneOf(session: SessionId | undefined): SessionState {
    const { lanes } = this.#parts;
    return session === undefined ? lanes.fresh(this.newSession()) : lanes.get(session);
  }

  async #create(lane: SessionState, made: Made): Promise<Created> {
    const { commit, lanes, claimed, unclaimed } = this.#parts;
    const created = await commit.submit(lane, { type: "create", ...made });
    // An absent session had no lease to take.
    if (lane.epoch === undefined) {
      // A claim that failed may have been made: then no other worker takes over the session, so this one must.
      await lanes.claim(lane).catch((error: unknown) => {
        unclaimed(lane.id);
        throw error;
      });
      claimed(lane);
    }
    return created;
  }

  #content({ delivery, prompt, made = {} }: PromptRequest): string {
    const within = Object.keys(made).length === 0 ? [] : [made];
    return this.#parts.ids.digest(canonical([delivery, prompt.text, prompt.data, ...within]));
  }

  /** The answer for this caller. A prompt that would be refused may be a repetition that only the store remembers. */
  async #accepted(lane: SessionState, command: CommandOf<"accept">, answer: Accepted | Refused): Promise<Accepted> {
    const { lanes, store } = this.#parts;
    if (answer.kind === "refused" || answer.runId !== command.runId) lanes.unindexRun(command.runId);
    if (answer.kind === "accepted") return answer;
    const { key, content } = command;
    const row = key === undefined ? undefined : await store.run({ session: lane.id, key });
    if (row === undefined || answer.code === "conflict") throw new ControlError(answer.code, answer.message);
    const repeated = repeat(lane.durable, { runId: row.id, acceptedAt: row.acceptedAt, content: row.content }, content);
    if (repeated.kind === "refused") throw new ControlError(repeated.code, repeated.message);
    return repeated;
  }
}
