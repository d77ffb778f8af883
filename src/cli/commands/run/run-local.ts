// Runs a prompt without a server: this program serves the data directory while it has work, so that other commands
// can control it. If another program serves the directory already, this one connects to it.
import { existsSync } from "node:fs";
import { ControlError, messageOf } from "../../../core/errors.ts";
import type { Notice } from "../../../ports/hooks.ts";
import { type DataDir, makeDataDir, openDataDir, socketOf } from "../../../sdk/data-dir.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { version } from "../../../system/version.ts";
import { openLog } from "../../../telemetry/log.ts";
import { redactor } from "../../../telemetry/redactor.ts";
import { connectionArguments } from "../../shared/connection-arguments.ts";
import { count } from "../../shared/format/format-outcome.ts";
import { HOST_LIMITS, type OpenedServer } from "../../shared/server/acp-host.ts";
import { AcpHosts } from "../../shared/server/acp-hosts.ts";
import { agentDigestOf, givenAgent } from "../../shared/server/agent-digest.ts";
import type { ComposedServer } from "../../shared/server/compose-server.ts";
import { isServerWaiting } from "../../shared/server/next-server.ts";
import type { RuntimePlan } from "../../shared/server/runtime.ts";
import { holderOf } from "../../shared/store-holder.ts";
import { surviveRejections, UNHANDLED_REJECTION } from "../../shared/unhandled-rejections.ts";
import type { RunPlace } from "./run.ts";
import { type RunFlags, refuseAgent } from "./run-options.ts";

/** How long a program without a server may take to park its work after its run has ended. */
const CLOSE_MS = 5_000;

/** How often a program whose run has ended checks whether the runs of its clients have ended too. */
const REST_POLL_MS = 100;

/** Runs on a named store, outside of the data directory. Commands with the same --store find it. */
export async function runOnStore(flags: RunFlags): Promise<RunPlace> {
  const { makePlan, openRuntime } = await import("../../shared/server/runtime.ts");
  const { serveStore, socketDirectory } = await import("../../shared/server/store-service.ts");
  const home = openDataDir({ home: flags.home, env: process.env });
  makeDataDir(home);
  const plan = await makePlan({ home, flags, trust: "ask" });
  const isNew = isNewStore(plan);
  surviveRejections((failure) => warn(`${UNHANDLED_REJECTION}: ${messageOf(failure)}`));
  const { belay, agent, notices } = await openRuntime(plan, {
    onNotice: warnNotice,
    ...socketDirectory(plan.store),
  });
  for (const notice of notices) warn(notice);
  const stopServing = await serveStore(belay, plan.store, warn);
  if (!isNew) reportResumed((await belay.live()).length);
  const close = (): Promise<unknown> => belay.close({ limitMs: CLOSE_MS }).finally(stopServing);
  return { control: belay, close, ...here(agent, plan) };
}

/** Runs in the data directory, which this program serves unless another program does. */
export async function runInDataDirectory(flags: RunFlags): Promise<RunPlace> {
  const home = openDataDir({ home: flags.home, env: process.env });
  makeDataDir(home);
  const opener = new Opener(home, flags);
  const given = givenAgent(flags);
  const server = await AcpHosts.open({
    ...{ home, agentDigest: agentDigestOf(flags), kind: "run", clock: systemClock, log: opener.log },
    open: () => opener.open(),
    ...(flags.local === true ? { joins: "none" } : given === undefined ? { joins: "any" } : {}),
  });
  opener.trust = "refuse";
  const close = async (): Promise<void> => void (await server.close(CLOSE_MS));
  const { control, hosted, where } = server;
  if (hosted === undefined) {
    if (server.kind === "server" && given !== undefined) {
      await close();
      refuseAgent(flags, where);
    }
    // The host may have changed by then; requests go to the current one.
    const isThere = async (): Promise<boolean> => holderOf(home.storeFile) !== undefined;
    return { control, kind: "server", where, options: connectionArguments(flags), isThere, close };
  }
  const { plan, isNew } = opener.opened();
  if (!isNew) reportResumed((await hosted.runtime.belay.live()).length);
  return { control, close, rest: (leave) => atRest(hosted, home, leave), ...here(hosted.runtime.agent, plan) };
}

const here = (agent: string, { store }: RuntimePlan): Pick<RunPlace, "kind" | "where" | "options"> => ({
  kind: "here",
  where: `in this program (no server), by ${agent}, on ${store}`,
  // A command that is started after the run has ended finds the file, but no server.
  options: connectionArguments({ store }),
});

/** Opens the server of a run: at the start, or later when the host that this program connected to has exited. */
class Opener {
  readonly redact = redactor();
  readonly log = openLog({ redact: this.redact, clock: systemClock, form: "pretty", level: "warn" });
  readonly #home: DataDir;
  readonly #flags: RunFlags;
  #plan: RuntimePlan | undefined;
  #isNew = false;
  /** `refuse` while a run is followed: the terminal is held for the run's questions. */
  trust: "ask" | "refuse" = "ask";

  constructor(home: DataDir, flags: RunFlags) {
    this.#home = home;
    this.#flags = flags;
  }

  async open(): Promise<OpenedServer> {
    const { makePlan } = await import("../../shared/server/runtime.ts");
    const { composeServer } = await import("../../shared/server/compose-server.ts");
    const server = { socket: socketOf(this.#home), crowd: HOST_LIMITS };
    // Only once: it removes the provider keys from the environment.
    this.#plan ??= await makePlan({ home: this.#home, flags: this.#flags, server, trust: this.trust });
    const plan = this.#plan;
    for (const secret of plan.taken.secrets) this.redact.add(secret);
    this.#isNew = isNewStore(plan);
    const { log, redact } = this;
    const composed = await composeServer({ plan, tcp: false, log, redact, version: version() });
    for (const notice of composed.runtime.notices) warn(notice);
    return { server: composed, store: plan.store };
  }

  opened(): { readonly plan: RuntimePlan; readonly isNew: boolean } {
    if (this.#plan === undefined) throw new ControlError("internal", "A run has a server that was never opened.");
    return { plan: this.#plan, isNew: this.#isNew };
  }
}

/**
 * Waits until the runs of this program's clients have ended, or `leave` resolves, so that they are not cut off. Does
 * not wait if a server waits for the directory: it takes the runs over, and new clients could delay it without end.
 */
async function atRest({ runtime: { belay } }: ComposedServer, home: DataDir, leave: Promise<unknown>): Promise<void> {
  let isLeaving = false;
  void leave.then(() => {
    isLeaving = true;
  });
  const busy = (): number => belay.load.live + belay.load.waiting;
  const isServers = (): boolean => busy() > 0 && isServerWaiting(home);
  if (isServers()) warn(`${count(busy(), "other run")} joined this program: the server that waits takes over`);
  else if (busy() > 0) warn(`${count(busy(), "other run")} joined this program. It exits when they end; Ctrl-C: now`);
  while (busy() > 0 && !isLeaving && !isServers()) {
    await Promise.race([new Promise<void>((resolve) => void systemClock.after(REST_POLL_MS, resolve)), leave]);
  }
}

const isNewStore = ({ store }: RuntimePlan): boolean => store === ":memory:" || !existsSync(store);

const warn = (text: string): void => void process.stderr.write(`belay: ${text}\n`);

function warnNotice(notice: Notice): void {
  if (notice.type === "process" && notice.warning === true) warn(notice.message);
}

function reportResumed(sessions: number): void {
  if (sessions === 0) return;
  warn(`${count(sessions, "session")} of an earlier process ${sessions === 1 ? "resumes" : "resume"} here as well`);
}
