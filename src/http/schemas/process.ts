// The schemas of running processes, of their history, results and output.
import { z } from "zod";
import { at, callId, count, processId, seq, sessionId } from "./id.ts";
import { outcome } from "./outcome.ts";

export const feedback = z.enum(["wake", "next-turn", "silent"]);
export const tier = z.enum(["namespace", "cgroup", "anchor", "group"]);

export const exit = z.object({ code: z.number().optional(), signal: z.string().optional() });

export const outputNote = z.object({
  bytes: count,
  stdoutBytes: count,
  stderrBytes: count,
  tail: z.string(),
  dir: z.string().optional(),
});

export const processInfo = z.object({
  id: processId,
  owner: z.union([callId, sessionId]),
  title: z.string(),
  phase: z.enum(["running", "stopping"]),
  feedback,
  pid: z.number().optional(),
  tier: tier.optional(),
  mechanism: z.enum(["bubblewrap", "unshare", "cgroup", "anchor", "group"]).optional(),
  profile: z.enum(["none", "contain", "workspace"]).optional(),
  startedAt: at.optional(),
  bytes: count.optional(),
});

export const processRow = z.object({
  id: processId,
  session: sessionId,
  requestedAt: seq,
  settledAt: seq.optional(),
  outcome: outcome.optional(),
});

export const processResult = z.object({
  processId,
  outcome,
  exit: exit.optional(),
  durationMs: z.number().optional(),
  output: outputNote.optional(),
  escaped: z.array(z.number()).optional(),
});

export const stream = z.enum(["stdout", "stderr", "all"]);

export const outputPage = z.object({
  stream,
  from: count,
  to: count,
  text: z.string(),
  missing: count,
  end: z.boolean(),
});

export const liveProcesses = z.object({ processes: z.array(processInfo) });
export const processHistory = z.object({ processes: z.array(processRow), next: seq.nullable() });

/** `info` while it runs, `row` from the store. */
export const processView = z.object({
  id: processId,
  sessionId,
  info: processInfo.optional(),
  row: processRow.optional(),
});

export const processWaits = z.object({ processId, waitedMs: count });
export const written = z.object({ written: count });
export const nothing = z.object({});
