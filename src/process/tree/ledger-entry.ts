// One entry of the ledger, and its parser. The file may have been written by any program, so each field is checked.

import { PATH_BYTES_MAX } from "../../core/limits.ts";
import { isProcessId, isSessionId, type ProcessId, type SessionId } from "../../core/model/ids.ts";
import type { Mechanism } from "../../ports/spawner.ts";
import { isCookie } from "../launch/environment.ts";
import type { Identity } from "./proc.ts";

/** Known before the start. */
export interface Intent {
  readonly id: ProcessId;
  readonly sessionId: SessionId;
  readonly cookie: string;
  readonly mechanism: Mechanism;
  /** The directory of its control group, if it has one. */
  readonly cgroup?: string;
}

interface Owned extends Intent {
  /** The server that started it. */
  readonly owner: Identity;
  /** The PID namespace of these pids, where there is one. */
  readonly namespace?: string;
}

export type Entry =
  | (Owned & { readonly phase: "intent" })
  /** `child`: the first process of the tree, with its pid in our namespace. */
  | (Owned & { readonly phase: "spawned"; readonly child: Identity });

/** Undefined: not an entry that Belay wrote. */
export function parseEntry(text: string): Entry | undefined {
  const { id, sessionId, cookie, mechanism, cgroup, owner, namespace, phase, child } = fieldsOf(text);
  if (typeof id !== "string" || !isProcessId(id) || typeof sessionId !== "string" || !isSessionId(sessionId)) {
    return undefined;
  }
  if (typeof cookie !== "string" || !isCookie(cookie) || !isMechanism(mechanism) || !isIdentity(owner)) {
    return undefined;
  }
  if (cgroup !== undefined && !isPath(cgroup)) return undefined;
  if (namespace !== undefined && typeof namespace !== "string") return undefined;
  const owned: Owned = {
    ...{ id, sessionId, cookie, mechanism, owner },
    ...(cgroup === undefined ? {} : { cgroup }),
    ...(namespace === undefined ? {} : { namespace }),
  };
  if (phase === "intent") return { ...owned, phase };
  return phase === "spawned" && isIdentity(child) ? { ...owned, phase, child } : undefined;
}

const MECHANISMS: ReadonlySet<unknown> = new Set<Mechanism>(["bubblewrap", "unshare", "cgroup", "anchor", "group"]);

const isMechanism = (value: unknown): value is Mechanism => MECHANISMS.has(value);

const isPath = (value: unknown): value is string =>
  typeof value === "string" && value.startsWith("/") && value.length < PATH_BYTES_MAX;

function isIdentity(value: unknown): value is Identity {
  const { pid, startTime, bootId } = asFields(value);
  return Number.isSafeInteger(pid) && Number.isSafeInteger(startTime) && typeof bootId === "string" && bootId !== "";
}

function fieldsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    return asFields(JSON.parse(text));
  } catch {
    return {};
  }
}

const asFields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? { ...value } : {};
