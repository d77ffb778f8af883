// `belay follow [ID]`: prints events as they happen. Disconnecting cancels nothing.

import { ControlError } from "../../../core/errors.ts";
import type { Delta, Gap } from "../../../core/model/delta.ts";
import type { Recorded } from "../../../core/model/event.ts";
import { isSessionId } from "../../../core/model/ids.ts";
import type { AllSessionsEvent, BelayControl } from "../../../ports/control.ts";
import { type Connection, withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK, EXIT_SIGNAL, type StopSignal } from "../../shared/exit-code.ts";
import { kindOf, resolveId, resolveSession } from "../../shared/id-prefix.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { wholeNumber } from "../../shared/whole-number.ts";
import { FollowView } from "./follow-view.ts";

export interface FollowFlags extends ConnectionOptions {
  readonly after?: string;
  readonly json?: true;
}

type FollowedEvent = Recorded | Delta | Gap | AllSessionsEvent;

/** Follows until the run has ended, or until a signal. */
export function runFollow(typed: string | undefined, flags: FollowFlags): Promise<number> {
  const after =
    flags.after === undefined
      ? undefined
      : wholeNumber(flags.after, "--after", { from: 0, to: Number.MAX_SAFE_INTEGER });
  return withControl(
    flags,
    (connection) => follow(connection, typed, { after, form: flags.json ? "lines" : "text" }),
    PATIENCE,
  );
}

/** A follower reconnects to a restarted server. */
const PATIENCE = { patienceMs: 60_000 };

interface FollowRequest {
  readonly after: number | undefined;
  readonly form: "text" | "lines";
}

async function follow(
  connection: Connection,
  typed: string | undefined,
  { after, form }: FollowRequest,
): Promise<number> {
  const leave = new AbortController();
  let left: StopSignal | undefined;
  const unsubscribe = onStopSignals((signal) => {
    left = signal;
    leave.abort();
    return "leaving";
  });
  const view = new FollowView({ output: process.stdout, form });
  try {
    for await (const event of eventsOf(connection, typed, { after, signal: leave.signal })) {
      if (left !== undefined) break;
      view.show(event);
    }
  } finally {
    unsubscribe();
    view.close();
  }
  if (left === undefined) return EXIT_OK;
  process.stderr.write("No longer following. Nothing was cancelled: running work continues.\n");
  return EXIT_SIGNAL[left];
}

interface EventsFrom {
  readonly after: number | undefined;
  readonly signal: AbortSignal;
}

async function* eventsOf(
  connection: Connection,
  typed: string | undefined,
  { after, signal }: EventsFrom,
): AsyncGenerator<FollowedEvent, void> {
  const { control, kind } = connection;
  if (kind === "store") return yield* recorded(control, typed, after);
  const id = typed === undefined ? undefined : await resolveId(control, typed);
  const isRun = id !== undefined && kindOf(id) === "run";
  if ((id === undefined || isRun) && after !== undefined) throw onlyOfSessions();
  if (id === undefined) return yield* control.events({ signal });
  if (isRun) return yield* ofRun(control, id, signal);
  const session = control.session(isSessionId(id) ? id : await resolveSession(control, id));
  const from = after ?? (await session.row()).head;
  yield* session.events({ after: from, deltas: "with", signal });
}

/** A run from its acceptance to its outcome. An abort does not wait for the next event. */
async function* ofRun(control: BelayControl, id: string, signal: AbortSignal): AsyncGenerator<FollowedEvent, void> {
  const events = (await control.run(id))[Symbol.asyncIterator]();
  const left = new Promise<{ readonly done: true }>((resolve) => {
    signal.addEventListener("abort", () => resolve({ done: true }), { once: true });
  });
  for (;;) {
    const next = await Promise.race([events.next(), left]);
    if (next.done === true) break;
    yield next.value;
  }
}

const onlyOfSessions = (): ControlError =>
  new ControlError("invalid", "--after is a position in the log of one session.", {
    hint: "A run is followed from its acceptance on, and all sessions together from now on: leave it out.",
  });

/** The recorded events of a store that no server has open. */
async function* recorded(
  control: BelayControl,
  typed: string | undefined,
  after = 0,
): AsyncGenerator<FollowedEvent, void> {
  if (typed === undefined) {
    throw new ControlError("invalid", "Nothing new happens in a file that no server has open.", {
      hint: "Name a session or a run to see what has happened in it: belay follow ID --store FILE",
    });
  }
  const id = await resolveId(control, typed);
  const session = control.session(await resolveSession(control, id));
  const { head } = await session.row();
  if (head <= after) return;
  for await (const event of session.events({ after })) {
    if (kindOf(id) !== "run" || ("runId" in event && event.runId === id)) yield event;
    if ("seq" in event && event.seq >= head) return;
  }
}
