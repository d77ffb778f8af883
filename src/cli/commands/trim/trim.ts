// `belay trim SESSION`: removes the oldest events of a session, and prints how many and why not more.
import { ControlError } from "../../../core/errors.ts";
import type { Trimmed } from "../../../core/model/upkeep.ts";
import { withControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK } from "../../shared/exit-code.ts";
import { count } from "../../shared/format/format-outcome.ts";
import { resolveSession } from "../../shared/id-prefix.ts";
import { print } from "../../shared/terminal/terminal.ts";
import { wholeNumber } from "../../shared/whole-number.ts";

export interface TrimFlags extends ConnectionOptions {
  readonly before?: string;
  readonly keep?: string;
  readonly json?: true;
}

export async function runTrim(typed: string, flags: TrimFlags): Promise<number> {
  // Before connecting: a mistyped number is reported at once.
  const beforeOf = cutOf(flags);
  return withControl(flags, async ({ control }) => {
    const session = control.session(await resolveSession(control, typed));
    const { head } = await session.row();
    const trimmed = await session.trim(beforeOf(head));
    if (flags.json) print(JSON.stringify(trimmed));
    else print(trimLine(session.id, trimmed));
    return EXIT_OK;
  });
}

/** Computes the first position to keep from the last position of the log. */
function cutOf({ before, keep }: TrimFlags): (head: number) => number {
  const bounds = { from: 0, to: Number.MAX_SAFE_INTEGER };
  if (before !== undefined) {
    const position = wholeNumber(before, "--before", { ...bounds, from: 1 });
    return () => position;
  }
  if (keep === undefined) {
    throw new ControlError("invalid", "belay trim needs to know how much is removed.", {
      hint: "Give one of them: --keep EVENTS, or --before SEQ.",
    });
  }
  const events = wholeNumber(keep, "--keep", bounds);
  return (head) => Math.max(1, head + 1 - events);
}

export function trimLine(session: string, { kept, removed, limit }: Trimmed): string {
  const done = `${session}: ${count(removed, "event")} removed; its log begins at position ${kept} now`;
  return limit === undefined ? `${done}.` : `${done}. ${LIMITS[limit]}`;
}

const LIMITS: Readonly<Record<NonNullable<Trimmed["limit"]>, string>> = {
  summary: "Older events than that are the model's context since its last summary.",
  run: "Older events than that belong to a run that has no outcome or would be cut in two.",
  process: "Older events than that belong to a process that has not ended.",
};
