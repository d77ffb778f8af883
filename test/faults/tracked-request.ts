// The promises that callers hold while the store fails, and how they translate into the model's evidence.
import { ControlError } from "../../src/core/errors.ts";
import type { Gap } from "../../src/core/model/delta.ts";
import type { Recorded } from "../../src/core/model/event.ts";
import type { SessionId } from "../../src/core/model/ids.ts";
import type { Answer, AnswerMoment, CallerRequest, FollowerSlice } from "../oracle/caller-history.ts";
import type { Evidence } from "../oracle/check.ts";
import type { Effect } from "../oracle/check-effects.ts";
import type { LabelOf } from "../oracle/log-index.ts";

export type PromiseState =
  | { readonly kind: "pending" }
  | { readonly kind: "fulfilled"; readonly value: unknown }
  | { readonly kind: "refused"; readonly code: string; readonly message: string }
  /** Rejected with something that a caller cannot branch on. */
  | { readonly kind: "error"; readonly error: string };

/** What was requested, in the form of the model. A function: some of it is known only once it was answered. */
export type Requested = () => Pick<CallerRequest, "name" | "sessionId" | "params">;

export type LogHeads = ReadonlyMap<SessionId, number>;

/** One request and what became of its promise. */
export interface TrackedRequest {
  readonly label: string;
  /** The life of the server that it was sent to. */
  readonly life: number;
  readonly sentAt: number;
  answeredAt: number;
  /** The length of each log when it was sent, and when it was answered. */
  readonly sentHeads: LogHeads;
  answeredHeads: LogHeads | undefined;
  state: PromiseState;
  readonly requested: Requested;
  /** A cancel of a run that was not over when it was requested: neither its outcome was recorded nor its work done. */
  readonly stopsRun?: boolean;
}

/** The events that a follower received, and the end of its stream. */
export interface TrackedFollower extends Pick<FollowerSlice, "sessionId" | "after"> {
  readonly received: (Recorded | Gap)[];
  readonly end: TrackedRequest;
}

/** What a stage has recorded. */
export interface StageRecords {
  readonly requests: readonly TrackedRequest[];
  readonly followers: readonly TrackedFollower[];
  /** Everything that was ever appended, even if it was trimmed since. */
  readonly logs: ReadonlyMap<SessionId, readonly Recorded[]>;
  readonly effects: readonly Effect[];
  /** Whether an append can have happened although its caller received `unavailable`. */
  readonly answersLost: boolean;
  /** Whether the store itself fails with `internal`; otherwise that code is a fault of Belay. */
  readonly storeFailsInternally: boolean;
  /** Lives that ended without notice: requests to them need not be answered. */
  readonly crashed: ReadonlySet<number>;
  /** Lives that were closed while the store did not answer: a stop that was not recorded by then never is. */
  readonly closedUnanswered: ReadonlySet<number>;
}

/** Follows a promise to its end; a rejection counts as handled. */
export function track(
  parts: Pick<TrackedRequest, "label" | "life" | "requested" | "stopsRun">,
  promise: Promise<unknown>,
  now: { readonly tick: () => number; readonly heads: () => LogHeads },
): TrackedRequest {
  const tracked: TrackedRequest = {
    ...{ ...parts, sentAt: now.tick(), sentHeads: now.heads() },
    ...{ answeredAt: Number.POSITIVE_INFINITY, answeredHeads: undefined, state: { kind: "pending" } },
  };
  const end = (state: PromiseState): void => {
    tracked.state = state;
    tracked.answeredAt = now.tick();
    tracked.answeredHeads = now.heads();
  };
  promise.then(
    (value) => end({ kind: "fulfilled", value }),
    (error: unknown) =>
      end(
        error instanceof ControlError
          ? { kind: "refused", code: error.code, message: error.message }
          : { kind: "error", error: String(error) },
      ),
  );
  return tracked;
}

/** A prompt with a key is the same prompt whenever it is sent with that key. */
export const promptLabel = (sessionId: SessionId, keyOrRun: string): string => `${sessionId} ${keyOrRun}`;

const labelOf: LabelOf = ({ runId, key }, sessionId) => promptLabel(sessionId, key ?? runId);

export function evidenceOf(records: StageRecords): Evidence {
  const requests = records.requests.map((one) => toRequest(one, records));
  const slices = records.followers.map(({ sessionId, after, received, end }): FollowerSlice => {
    // A follower that received an error, or was disconnected, knows that it has not received everything.
    const stays = end.state.kind === "pending" || (end.state.kind === "fulfilled" && end.state.value === "left");
    return { sessionId, after, received, ...(stays ? { untilRest: true } : {}) };
  });
  const { logs, effects } = records;
  // A follower's stream may be open until the last moment; whether it ends is checked when it leaves.
  const ends = records.followers
    .filter(({ end }) => end.state.kind === "error")
    .map(({ end }) => toRequest(end, records));
  return { history: { requests: [...requests, ...ends], slices }, logs, effects, labelOf, storeFails: true };
}

function toRequest(tracked: TrackedRequest, records: StageRecords): CallerRequest {
  const { sentAt, answeredAt, life } = tracked;
  const requested = tracked.requested();
  const moment = momentOf(tracked, requested.sessionId);
  const answered = { sentAt, answeredAt, answer: toAnswer(tracked, records), life };
  // The edge: what a promise was fulfilled with is what its method returns.
  return { ...requested, ...answered, ...(moment === undefined ? {} : { moment }) } as CallerRequest;
}

function momentOf({ sentHeads, answeredHeads }: TrackedRequest, sessionId: SessionId): AnswerMoment | undefined {
  if (answeredHeads === undefined) return undefined;
  const [sentHead, head] = [sentHeads.get(sessionId) ?? 0, answeredHeads.get(sessionId) ?? 0];
  return { sentHead, head, trimmedTo: 0, server: "serving", storeFailed: true };
}

function toAnswer({ state, life, stopsRun, requested }: TrackedRequest, records: StageRecords): Answer<unknown> {
  switch (state.kind) {
    case "pending":
      return records.crashed.has(life) ? { kind: "unknown", code: "crashed" } : state;
    case "fulfilled":
      return { kind: "returned", value: state.value };
    case "error":
      return state;
    case "refused": {
      const { code, message } = state;
      if (code === "internal" && !records.storeFailsInternally) return { kind: "error", error: message };
      const cutOff = records.crashed.has(life) || records.closedUnanswered.has(life);
      if (stopsRun === true && !cutOff && message.includes("carried out")) {
        return { kind: "refused", code, carriedOut: true };
      }
      const unsure = code === "unavailable" && records.answersLost && !requested().name.startsWith("cancel-");
      return { kind: unsure ? "unknown" : "refused", code };
    }
  }
}

/** The value of a request that was fulfilled. The edge: the caller knows what its method returns. */
export const fulfilledValue = <T>({ state }: TrackedRequest): T | undefined =>
  state.kind === "fulfilled" ? (state.value as T) : undefined;
