// The options of `openBelay()`, checked before anything is opened.

import { checkMs, invalid, isObject, rejectUnknown } from "../core/input.ts";
import type { Recorded } from "../core/model/event.ts";
import type { SessionId } from "../core/model/ids.ts";
import type { Retention } from "../core/model/retention.ts";
import { checkModes } from "../engine/modes.ts";
import { checkRetention } from "../engine/upkeep/retention.ts";
import type { Agent } from "../ports/agent.ts";
import type { Clock, Ids } from "../ports/clock.ts";
import type { Hooks, Notify } from "../ports/hooks.ts";
import type { Store } from "../ports/store.ts";
import type { Directories } from "./directories.ts";
import { checkProcesses, type ProcessesOptions } from "./open-spawner.ts";

export interface BelayOptions {
  /** The function that performs a run's turns. */
  readonly agent: Agent;
  /** A file for the embedded SQLite store, `":memory:"` for an in-memory store, or a store of your own. */
  readonly store: string | Store;
  /**
   * Serves the directory of the store on its private socket, so that `belay ps`, `cancel` and `stop-all` with `--home`
   * reach this program, and `belay run` joins it. The directory must be private to this user. Default false.
   */
  readonly serve?: boolean;
  /** How long stopping work may take before it is abandoned and reported. Default 1500. */
  readonly graceMs?: number;
  /** The maximum number of live runs. Default 1024. */
  readonly liveRunsMax?: number;
  /** What happens to a run whose worker crashed: it is resumed (default), or ended as `lost`. */
  readonly onCrash?: "resume" | "lose";
  /** Callbacks that observe or decide. Each has a time limit, and none can delay a stop. */
  readonly hooks?: Hooks;
  /** The maximum duration of a run. After it the run is cancelled, with the limit as the reason. Default: no limit. */
  readonly runLimitMs?: number;
  /** How commands are started, contained and ended. Nothing is opened before the first one starts. */
  readonly processes?: ProcessesOptions;
  /**
   * The directories that sessions may work in. Default `workspace`: those inside `processes.workspace`, which
   * defaults to the working directory. `any`: every directory.
   */
  readonly directories?: Directories;
  /**
   * How much is kept of each session (`perSession`: `days`, `events`, `bytes`) and in total (`overall`: `days`,
   * `sessions`, `bytes`). The excess is removed in the background; running work never is. Default: everything is
   * kept.
   */
  readonly retention?: Retention;
  /** Receives notices for operators: late results, trouble with the store. */
  readonly onNotice?: Notify;
  /**
   * Detects, from a thread, when code of the agent or a tool blocks the event loop while work is live, and writes a
   * line to standard error, as text (default) or JSON. `off`: no such thread. With a `clock` there is none.
   */
  readonly loopWatch?: "text" | "json" | "off";
  /** Called with all events right after they are recorded, for metrics and tracing. It must return quickly. */
  readonly onRecorded?: (sessionId: SessionId, events: readonly Recorded[]) => void;
  /**
   * Removes secrets from error texts before they are recorded. Default: anything that looks like a token or a key of
   * a well-known service. If it throws or returns no text, `[redacted]` is recorded instead of the whole text.
   */
  readonly redact?: (text: string) => string;
  /** For tests: a controlled clock and predictable ids. */
  readonly clock?: Clock;
  readonly ids?: Ids;
}

export function checkOptions(options: BelayOptions): BelayOptions {
  if (!isObject(options)) throw invalid("openBelay() takes { agent, store }.");
  const { agent, store, graceMs, liveRunsMax, onCrash, onNotice, clock, ids, hooks, runLimitMs, ...others } = options;
  const { processes, directories, onRecorded, loopWatch, redact, retention, serve, ...rest } = others;
  rejectUnknown(rest, "openBelay()");
  if (typeof agent !== "function") throw invalid("`agent` must be a function: (turn) => …");
  checkModes(agent);
  if (typeof store !== "string" && !isObject(store))
    throw invalid('`store` must be a file name, ":memory:" or a store.');
  if (store === "") throw invalid("`store` must not be empty.");
  if (typeof store !== "string") checkStore(store);
  checkServe(serve, store);
  if (graceMs !== undefined) checkMs(graceMs, "graceMs", 600_000);
  if (runLimitMs !== undefined) checkMs(runLimitMs, "runLimitMs", 2 ** 31 - 1);
  if (hooks !== undefined) checkHooks(hooks);
  if (retention !== undefined) checkRetention(retention);
  if (processes !== undefined) checkProcesses(processes);
  if (directories !== undefined && directories !== "workspace" && directories !== "any")
    throw invalid('`directories` must be "workspace" or "any".');
  if (loopWatch !== undefined && !["text", "json", "off"].includes(loopWatch))
    throw invalid(`\`loopWatch\` must be "text", "json" or "off" (got ${JSON.stringify(loopWatch)}).`);
  if (onNotice !== undefined && typeof onNotice !== "function") throw invalid("`onNotice` must be a function.");
  if (onRecorded !== undefined && typeof onRecorded !== "function") throw invalid("`onRecorded` must be a function.");
  if (redact !== undefined && typeof redact !== "function") throw invalid("`redact` must be a function.");
  if (liveRunsMax !== undefined && (!Number.isInteger(liveRunsMax) || liveRunsMax < 1)) {
    throw invalid("`liveRunsMax` must be a whole number from 1.");
  }
  if (onCrash !== undefined && onCrash !== "resume" && onCrash !== "lose")
    throw invalid('`onCrash` must be "resume" or "lose".');
  return options;
}

/** Checks a host's own store: a missing method fails now, not in the middle of a run. */
function checkStore(store: Partial<Record<string, unknown>> & object): void {
  const missing = STORE_METHODS.filter((name) => typeof store[name] !== "function");
  if (missing.length === 0) return;
  throw invalid(`\`store\` is not a store: it lacks ${missing.map((name) => `\`${name}()\``).join(", ")}.`);
}

type RequiredOf<T> = { [K in keyof T]-?: undefined extends T[K] ? never : K }[keyof T];

/** Derived from the store's type, so that none is missing here. */
const STORE_METHODS = Object.keys({
  ...{ append: true, load: true, read: true, grown: true, run: true, call: true, process: true, processes: true },
  ...{ runs: true, session: true, sessions: true, ids: true, unattended: true, claim: true, renew: true },
  ...{ release: true, trim: true, close: true },
} satisfies Readonly<Record<RequiredOf<Store>, true>>);

function checkServe(serve: unknown, store: string | Store): void {
  if (serve !== undefined && typeof serve !== "boolean") throw invalid("`serve` must be true or false.");
  if (serve === true && (typeof store !== "string" || store === ":memory:")) {
    throw invalid("`serve` needs a store in a file: it serves the directory of that file.");
  }
}

function checkHooks(hooks: Hooks): void {
  if (!isObject(hooks)) throw invalid("`hooks` must be an object of functions.");
  const { beforeCall, afterCall, onCancel, onOutcome, onSessionEnd, ...rest } = hooks;
  rejectUnknown(rest, "`hooks`");
  for (const hook of [beforeCall, afterCall, onCancel, onOutcome, onSessionEnd]) {
    if (hook !== undefined && typeof hook !== "function") throw invalid("Each of the `hooks` must be a function.");
  }
}
