// The ends of calls and processes, for callers that wait for them.
import type { Outcome } from "../../core/model/cancel.ts";
import { type CallId, type ProcessId, runOf, type SessionId, sessionOf } from "../../core/model/ids.ts";
import type { Lane } from "../../core/model/lane.ts";
import type { ProcessResult } from "../../ports/spawner.ts";
import type { Store } from "../../ports/store.ts";
import type { SessionRegistry } from "../log/session-registry.ts";
import type { SessionState } from "../log/session-state.ts";
import type { ProcessManager } from "../process/process-manager.ts";
import { awaitedEnd } from "./end-waiter.ts";
import { RemoteEnds, type RemoteParts } from "./remote-ends.ts";
import type { Waiters } from "./waiters.ts";

interface Parts {
  readonly store: Store;
  readonly lanes: SessionRegistry;
  /** Includes those of runs and questions. */
  readonly waiters: Waiters;
  readonly processes: ProcessManager;
  readonly pages: RemoteParts["pages"];
}

export class WorkEnds {
  readonly waiters: Waiters;
  readonly #parts: Parts;
  readonly #remote: RemoteEnds;

  constructor(parts: Parts) {
    const { waiters, store, pages } = parts;
    this.#parts = parts;
    this.waiters = waiters;
    this.#remote = new RemoteEnds({
      ...{ waiters, store, pages },
      drives: (session) => this.#driven(session) !== undefined,
    });
  }

  /** Resolves with the end of a call, once it is durable. Undefined: `signal` aborted, or there is no such call. */
  async call(id: CallId, signal: AbortSignal): Promise<Outcome | undefined> {
    const { store, lanes } = this.#parts;
    const session = lanes.sessionOf(runOf(id)) ?? (await store.run(runOf(id)))?.session;
    if (session === undefined) return undefined;
    const isLive = (): boolean => this.#driven(session)?.live?.live.some((call) => call.id === id) === true;
    const lookUp = async (): Promise<Outcome | undefined> => (await store.call(id))?.outcome;
    return awaitedEnd({ id, session, isLive, lookUp }, { waiters: this.waiters, remote: this.#remote }, signal);
  }

  /** The same for a process. */
  process(id: ProcessId, signal: AbortSignal): Promise<ProcessResult | undefined> {
    const session = sessionOf(id);
    const isLive = (): boolean => this.#driven(session)?.processes.live.some((one) => one.id === id) === true;
    const lookUp = (): Promise<ProcessResult | undefined> => this.#parts.processes.ended(id);
    return awaitedEnd({ id, session, isLive, lookUp }, { waiters: this.waiters, remote: this.#remote }, signal);
  }

  /** Another worker drives this lane now, and records the ends of its work. */
  fenced({ id, durable }: SessionState): void {
    this.#remote.fenced(id, durable.head);
  }

  /** The durable state of a session that this worker drives. */
  #driven(session: SessionId): Lane | undefined {
    const lane = this.#parts.lanes.peek(session);
    return lane?.epoch === undefined || lane.phase !== "ready" ? undefined : lane.durable;
  }
}
