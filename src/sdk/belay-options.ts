// What `openBelay()` takes, checked before anything is opened.

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
  /** The function that carries out a run's turns. */
  readonly agent: Agent;
  /** A file for the embedded SQLite store, `":memory:"` for one that forgets, or a store of your own. */
  readonly store: string | Store;
  /**
   * Serves the directory of the store on its private socket, so that `belay ps`, `cancel` and `stop-all` with `--home`
   * reach this program, and `belay run` joins it. The directory must be private to this user. Default false.
   */
  readonly serve?: boolean;
  /** How long work may take to stop before it is given up and named. Default 1500. */
  readonly graceMs?: number;
  /** Runs that are live at once. Default 1024. */
  readonly liveRunsMax?: number;
  /** What becomes of a run whose worker vanished: taken up again (default), or ended as `lost`. */
  readonly onCrash?: "resume" | "lose";
  /** What the host wants to hear of, or to have a say in. Each is bounded in time, and none can hold up a stop. */
  readonly hooks?: Hooks;
  /** How long a run may take altogether. Then it is cancelled, with the limit as the reason. Default: no limit. */
  readonly runLimitMs?: number;
  /** How commands are started, held together and ended. Nothing is opened before the first one is wanted. */
  readonly processes?: ProcessesOptions;
  /**
   * Which directories a session may be given to work in. Default `workspace`: those inside `processes.workspace`, which
   * is the working directory if it is not set. `any`: all that there are.
   */
  readonly directories?: Directories;
  /**
   * What is kept of each session (`perSession`: `days`, `events`, `bytes`) and of all (`overall`: `days`, `sessions`,
   * `bytes`). What is over is removed in the background, never what is going on. Default: everything is kept.
   */
  readonly retention?: Retention;
  /** Told about things an operator should know: late results, trouble with the store. */
  readonly onNotice?: Notify;
  /**
   * Watches from a thread whether code of the agent or a tool blocks the event loop while work is live, and writes a
   * line to standard error, as text (default) or JSON. `off`: there is no such thread. With a `clock` there is none.
   */
  readonly loopWatch?: "text" | "json" | "off";
  /** Told of everything that is recorded, right after it was. For counting and tracing; it must not take long. */
  readonly onRecorded?: (sessionId: SessionId, events: readonly Recorded[]) => void;
  /**
   * Takes secrets out of error texts before they are recorded. Default: whatever looks like a token or a key of a
   * well-known service. If it throws or returns no text, `[redacted]` is recorded instead of the whole text.
   */
  readonly redact?: (text: string) => string;
  /** For tests: time and ids that can be foreseen. */
  readonly clock?: Clock;
  readonly ids?: Ids;
}

export function checkOptions(options: BelayOptions): BelayOptions {
  if (!isObject(options)) throw invalid("openBelay() takes { agent, store }.");
  const { agent, store, graceMs, liveRunsMax, onCrash, onNotice, clock, ids, hooks, runLimitMs, ...others } = options;
  const { processes, directories, onRecorded, loopWatch, redact, retention, serve, ...rest } = others;
  rejectUnknown(rest, "openBelay()");
  if (typeof agent !== "function") throw invalid("`agent` is a function: (turn) => …");
  checkModes(agent);
  if (typeof store !== "string" && !isObject(store)) throw invalid('`store` is a file name, ":memory:" or a store.');
  if (store === "") throw invalid("`store` is empty.");
  if (typeof store !== "string") checkStore(store);
  checkServe(serve, store);
  if (graceMs !== undefined) checkMs(graceMs, "graceMs", 600_000);
  if (runLimitMs !== undefined) checkMs(runLimitMs, "runLimitMs", 2 ** 31 - 1);
  if (hooks !== undefined) checkHooks(hooks);
  if (retention !== undefined) checkRetention(retention);
  if (processes !== undefined) checkProcesses(processes);
  if (directories !== undefined && directories !== "workspace" && directories !== "any")
    throw invalid('`directories` is "workspace" or "any".');
  if (loopWatch !== undefined && !["text", "json", "off"].includes(loopWatch))
    throw invalid(`\`loopWatch\` must be "text", "json" or "off" (got ${JSON.stringify(loopWatch)}).`);
  if (onNotice !== undefined && typeof onNotice !== "function") throw invalid("`onNotice` is a function.");
  if (onRecorded !== undefined && typeof onRecorded !== "function") throw invalid("`onRecorded` is a function.");
  if (redact !== undefined && typeof redact !== "function") throw invalid("`redact` is a function.");
  if (liveRunsMax !== undefined && (!Number.isInteger(liveRunsMax) || liveRunsMax < 1)) {
    throw invalid("`liveRunsMax` is a whole number from 1.");
  }
  if (onCrash !== undefined && onCrash !== "resume" && onCrash !== "lose")
    throw invalid('`onCrash` is "resume" or "lose".');
  return options;
}

/** A store of the host's own: what lacks a method fails now, and not in the middle of a run. */
function checkStore(store: Partial<Record<string, unknown>> & object): void {
  const missing = STORE_METHODS.filter((name) => typeof store[name] !== "function");
  if (missing.length === 0) return;
  throw invalid(`\`store\` is no store: it lacks ${missing.map((name) => `\`${name}()\``).join(", ")}.`);
}

type RequiredOf<T> = { [K in keyof T]-?: undefined extends T[K] ? never : K }[keyof T];

/** By the type of a store, so that none is missing here. */
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
  if (!isObject(hooks)) throw invalid("`hooks` is an object of functions.");
  const { beforeCall, afterCall, onCancel, onOutcome, onSessionEnd, ...rest } = hooks;
  rejectUnknown(rest, "`hooks`");
  for (const hook of [beforeCall, afterCall, onCancel, onOutcome, onSessionEnd]) {
    if (hook !== undefined && typeof hook !== "function") throw invalid("Each of the `hooks` is a function.");
  }
}
