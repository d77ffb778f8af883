// The whole suite: rounds in lanes, until there have been enough deaths.
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { EditedModule } from "../mistakes/mistake.ts";
import { FINDING_KINDS, type Finding, type FindingKind } from "./finding.ts";
import { playRound, type RoundResult } from "./round.ts";

export interface LoopWish {
  readonly kills: number;
  readonly seed: number;
  readonly lanes: number;
  /** Only these points, in this order, in every round. */
  readonly points?: readonly (readonly string[])[] | undefined;
  /** Only this round. */
  readonly round?: number | undefined;
  /** Modules with a known mistake, which the servers load in place of those on disk. */
  readonly modules?: readonly EditedModule[];
  /** Deaths of one store. Default 25. */
  readonly roundKills?: number;
  /** No further round is begun once something was found. */
  readonly untilFound?: boolean;
  /** `never`: nothing is kept of what was found. */
  readonly keep?: "never";
  /** Once aborted, what goes on is ended and removed, and it rejects with the reason. */
  readonly stop?: AbortSignal | undefined;
  readonly onKill?: (kills: number) => void;
  readonly onFinding?: (finding: Finding, result: RoundResult, kept: string) => void;
}

export interface LoopResult extends Readonly<Record<FindingKind, number>> {
  readonly kills: number;
  readonly acked: number;
  readonly operations: number;
  readonly rounds: number;
  readonly nestedKills: number;
  /** Distinct points at which a server really died. */
  readonly points: readonly string[];
  readonly violations: number;
}

/** A log that has lived through many crashes, and is still short enough to be looked at. */
const ROUND_KILLS = 25;

export async function crashLoop(wish: LoopWish): Promise<LoopResult> {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "belay-crash-")));
  const modules = wish.modules === undefined ? undefined : join(base, "modules.json");
  if (modules !== undefined) writeFileSync(modules, JSON.stringify(wish.modules));
  const results: RoundResult[] = [];
  let [left, next, kills] = [wish.kills, wish.round ?? 0, 0];
  let found = false;
  const remove = (): void => {
    // Again if need be: who was killed a moment ago may still have written there.
    if (!found || wish.keep === "never") rmSync(base, { recursive: true, force: true, maxRetries: 10 });
  };
  // Should somebody leave without waiting.
  process.once("exit", remove);
  const lane = async (): Promise<void> => {
    while (left > 0 && !(found && wish.untilFound === true)) {
      const take = Math.min(left, wish.roundKills ?? ROUND_KILLS);
      left -= take;
      const number = next;
      next += 1;
      const dir = join(base, `r${number}`);
      const result = await playRound({
        ...{ number, kills: take, dir, cache: join(base, "cache"), seed: wish.seed, modules },
        ...{ points: wish.points?.[number % wish.points.length], stop: wish.stop },
        onKill: () => {
          kills += 1;
          wish.onKill?.(kills);
        },
      });
      results.push(result);
      for (const finding of result.findings) wish.onFinding?.(finding, result, dir);
      if (result.findings.length > 0) {
        found = true;
        writeFileSync(join(dir, "findings.json"), JSON.stringify(result, undefined, 2));
      } else rmSync(dir, { recursive: true, force: true });
    }
  };
  const lanes = Array.from({ length: wish.lanes }, lane);
  try {
    await Promise.all(lanes);
  } finally {
    // Nothing is removed under the hands of a server that still ends.
    if (wish.stop?.aborted === true) await Promise.allSettled(lanes);
    process.removeListener("exit", remove);
    remove();
  }
  return summary(results);
}

function summary(results: readonly RoundResult[]): LoopResult {
  const sum = (of: (one: RoundResult) => number): number => results.reduce((total, one) => total + of(one), 0);
  const count = (kind: FindingKind): number =>
    sum(({ findings }) => findings.filter((one) => one.kind === kind).length);
  // The edge: an object made of all the names has all the names.
  const counts = Object.fromEntries(FINDING_KINDS.map((kind) => [kind, count(kind)])) as Record<FindingKind, number>;
  return {
    kills: sum((one) => one.kills),
    acked: sum((one) => one.acked),
    ...counts,
    operations: sum((one) => one.operations),
    rounds: results.length,
    nestedKills: sum((one) => one.nestedKills),
    points: [...new Set(results.flatMap(({ hits }) => hits))].sort(),
    violations: sum(({ findings }) => findings.length),
  };
}
