// `belay ps`: lists running and waiting runs, calls and processes in one table.

import type { CallId } from "../../../core/model/ids.ts";
import type { CallExplained, LiveExplained } from "../../../core/read/explained.ts";
import type { Explanation } from "../../../ports/explanation.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { ageOf } from "../../shared/format/age.ts";
import { styleOf, table } from "../../shared/format/table.ts";
import { print } from "../../shared/terminal/terminal.ts";

const COLUMNS = [
  { title: "ID" },
  { title: "WHAT", widthMin: 6 },
  { title: "PHASE" },
  { title: "AGE" },
  { title: "WAITS FOR", widthMin: 9 },
  { title: "PID" },
  { title: "TIER", widthMin: 4 },
  { title: "SESSION", widthMin: 7 },
] as const;

export function runPs(flags: ConnectionOptions & { readonly json?: true }): Promise<number> {
  return withControl(flags, async ({ control }) => {
    const sessions = await control.live();
    if (flags.json) print(JSON.stringify({ sessions }));
    else if (sessions.length === 0) print("Nothing is going on.");
    else for (const line of psLines(sessions, systemClock.now())) print(line);
    return EXIT_OK;
  });
}

function psLines(sessions: readonly Explanation[], now: number): readonly string[] {
  return table(
    COLUMNS,
    sessions.flatMap((one) => rowsOf(one, now)),
    styleOf(process.stdout),
  );
}

/** The live run first, with its calls and the processes; then waiting runs. */
export function rowsOf(session: Explanation, now: number): readonly (readonly string[])[] {
  const { sessionId, live, queue, steers, processes } = session;
  const cells = (...row: readonly string[]): readonly string[] => [...row, sessionId];
  return [
    ...(live === undefined
      ? []
      : [cells(live.runId, "run", live.phase, ageOf(live.since, now), runWaits(live), "", "")]),
    ...(live?.calls ?? []).map((call) =>
      cells(call.callId, call.name, call.phase, ageOf(call.since, now), callWaits(call, live), "", ""),
    ),
    ...processes.map(({ id, title, phase, startedAt, pid, tier, owner }) =>
      cells(id, title, phase, ageOf(startedAt, now), ownedBy(owner), pid === undefined ? "" : String(pid), tier ?? ""),
    ),
    ...steers.map(({ runId, text }) => cells(runId, text, "steer", "", "the next turn", "", "")),
    ...queue.map(({ runId, text }, at) => cells(runId, text, "queued", "", before(live, at), "", "")),
  ];
}

function runWaits({ turn, questions, calls }: LiveExplained): string {
  const open = questions.filter(({ owner }) => !calls.some(({ callId }) => callId === owner));
  if (open.length > 0) return `answer ${open.map(({ id }) => id).join(" ")}`;
  return turn === undefined && calls.length > 0 ? "its calls" : "";
}

/** What the call waits for, with the id of the question, so that the user can answer it. */
function callWaits({ callId, waits }: CallExplained, live: LiveExplained | undefined): string {
  const open = live?.questions.filter(({ owner }) => owner === callId).map(({ id }) => id) ?? [];
  if (open.length > 0) return `${waits ?? "answer"} ${open.join(" ")}`;
  return waits ?? "";
}

const ownedBy = (owner: CallId | string): string => (owner.startsWith("call_") ? "" : "(background)");

const before = (live: LiveExplained | undefined, at: number): string => {
  const ahead = at + (live === undefined ? 0 : 1);
  return ahead === 0 ? "a free slot" : `${ahead} before it`;
};
