// A run without a server: this program serves the data directory for as long as it has work, so that other commands
// reach it. Another that serves it already is joined.
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
import { CROWD, type OpenedServer } from "../../shared/server/acp-host.ts";
import { AcpHosts } from "../../shared/server/acp-hosts.ts";
import { givenAgent, markOf } from "../../shared/server/agent-digest.ts";
import type { ComposedServer } from "../../shared/server/compose-server.ts";
import { isServerWaiting } from "../../shared/server/next-server.ts";
import type { RuntimePlan } from "../../shared/server/runtime.ts";
import { holderOf } from "../../shared/store-holder.ts";
import { STRAY, surviveRejections } from "../../shared/unhandled-rejections.ts";
import type { RunPlace } from "./run.ts";
import { type RunFlags, refuseAgent } from "./run-options.ts";

/** How long a program without a server may take to set everything down when its run has ended. */
const CLOSE_MS = 5_000;

/** How often a program whose run has ended looks whether those that joined it have ended too. */
const REST_LOOK_MS = 100;

/** On a store that was named: it is no part of the data directory. Commands with the same --store find it. */
export async function runOnStore(flags: RunFlags): Promise<RunPlace> {
  const { makePlan, openRuntime } = await import("../../shared/server/runtime.ts");
  const { serveStore, socketDirectory } = await import("../../shared/server/store-service.ts");
  const home = openDataDir({ home: flags.home, env: process.env });
  makeDataDir(home);
  const plan = await makePlan({ home, flags, trust: "ask" });
  const isNew = isNewStore(plan);
  surviveRejections((failure) => say(`${STRAY}: ${messageOf(failure)}`));
  const { belay, agent, notices } = await openRuntime(plan, {
    onNotice: sayWarning,
    ...socketDirectory(plan.store),
  });
  for (const notice of notices) say(notice);
  const stopServing = await serveStore(belay, plan.store, say);
  if (!isNew) sayTaken((await belay.live()).length);
  const close = (): Promise<unknown> => belay.close({ limitMs: CLOSE_MS }).finally(stopServing);
  return { control: belay, close, ...here(agent, plan) };
}

/** In the data directory: served here, or by a program that was faster. */
export async function runInDataDirectory(flags: RunFlags): Promise<RunPlace> {
  const home = openDataDir({ home: flags.home, env: process.env });
  makeDataDir(home);
  const opener = new Opener(home, flags);
  const given = givenAgent(flags);
  const server = await AcpHosts.open({
    ...{ home, mark: markOf(flags), kind: "run", clock: systemClock, log: opener.log },
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
    // Another program may do the work by then, and this one's requests go there.
    const isThere = async (): Promise<boolean> => holderOf(home.storeFile) !== undefined;
    return { control, kind: "server", where, options: connectionArguments(flags), isThere, close };
  }
  const { plan, isNew } = opener.opened();
  if (!isNew) sayTaken((await hosted.works.belay.live()).length);
  return { control, close, rest: (leave) => atRest(hosted, home, leave), ...here(hosted.works.agent, plan) };
}

const here = (agent: string, { store }: RuntimePlan): Pick<RunPlace, "kind" | "where" | "options"> => ({
  kind: "here",
  where: `in this program (no server), by ${agent}, on ${store}`,
  // A command that comes after its end finds no server, but the file.
  options: connectionArguments({ store }),
});

/** Opens the server of a run, perhaps later: when the program that it has joined is gone. */
class Opener {
  readonly redact = redactor();
  readonly log = openLog({ redact: this.redact, clock: systemClock, form: "pretty", level: "warn" });
  readonly #home: DataDir;
  readonly #flags: RunFlags;
  #plan: RuntimePlan | undefined;
  #isNew = false;
  /** While a run is followed, the terminal is held for its questions. */
  trust: "ask" | "refuse" = "ask";

  constructor(home: DataDir, flags: RunFlags) {
    this.#home = home;
    this.#flags = flags;
  }

  async open(): Promise<OpenedServer> {
    const { makePlan } = await import("../../shared/server/runtime.ts");
    const { composeServer } = await import("../../shared/server/compose-server.ts");
    const server = { socket: socketOf(this.#home), crowd: CROWD };
    // Once: it takes the keys of providers out of the environment.
    this.#plan ??= await makePlan({ home: this.#home, flags: this.#flags, server, trust: this.trust });
    const plan = this.#plan;
    for (const secret of plan.taken.secrets) this.redact.add(secret);
    this.#isNew = isNewStore(plan);
    const { log, redact } = this;
    const house = await composeServer({ plan, tcp: false, log, redact, version: version() });
    for (const notice of house.works.notices) say(notice);
    return { house, store: plan.store };
  }

  opened(): { readonly plan: RuntimePlan; readonly isNew: boolean } {
    if (this.#plan === undefined) throw new ControlError("internal", "A run has a server that was never opened.");
    return { plan: this.#plan, isNew: this.#isNew };
  }
}

/**
 * The runs of programs that joined this one are not cut off: it stays until they have ended, or until it has to
 * leave. A server that waits takes them over instead; else runs that join one after the other would keep it waiting.
 */
async function atRest({ works: { belay } }: ComposedServer, home: DataDir, leave: Promise<unknown>): Promise<void> {
  let isLeaving = false;
  void leave.then(() => {
    isLeaving = true;
  });
  const busy = (): number => belay.load.live + belay.load.waiting;
  const isServers = (): boolean => busy() > 0 && isServerWaiting(home);
  if (isServers()) say(`${count(busy(), "other run")} joined this program: the server that waits takes over`);
  else if (busy() > 0) say(`${count(busy(), "other run")} joined this program. It leaves when they end; Ctrl-C: now`);
  while (busy() > 0 && !isLeaving && !isServers()) {
    await Promise.race([new Promise<void>((resolve) => void systemClock.after(REST_LOOK_MS, resolve)), leave]);
  }
}

const isNewStore = ({ store }: RuntimePlan): boolean => store === ":memory:" || !existsSync(store);

const say = (text: string): void => void process.stderr.write(`belay: ${text}\n`);

function sayWarning(notice: Notice): void {
  if (notice.type === "process" && notice.warning === true) say(notice.message);
}

function sayTaken(sessions: number): void {
  if (sessions === 0) return;
  say(`${count(sessions, "session")} ${sessions === 1 ? "goes" : "go"} on of an earlier life here as well`);
}
