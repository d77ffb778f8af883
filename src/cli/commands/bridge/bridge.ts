// `belay bridge`: Belay as a child of another program, on stdin and stdout. Without a server or a store that was named,
// it serves the data directory as long as it lives, or goes to the program that serves it already.
//
// Invariants
// 1. Nothing but the protocol is written to stdout: whatever else is printed in this program goes to stderr.
// 2. A host that is gone does not end the program at once: what it has begun is brought to an end before.

import { ControlError } from "../../../core/errors.ts";
import { SHUTDOWN_MS } from "../../../core/limits.ts";
import type { Notify } from "../../../ports/hooks.ts";
import type { Audit } from "../../../protocols/bridge/audit.ts";
import { type BridgeOptions, runBridge } from "../../../protocols/bridge/bridge.ts";
import { type DataDir, makeDataDir, openDataDir, socketOf } from "../../../sdk/data-dir.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { version } from "../../../system/version.ts";
import { openAuditTrail } from "../../../telemetry/audit/audit-file.ts";
import { openLog } from "../../../telemetry/log.ts";
import type { LineForm } from "../../../telemetry/log-line.ts";
import { redactor } from "../../../telemetry/redactor.ts";
import { openControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK, EXIT_SIGNAL } from "../../shared/exit-code.ts";
import { CROWD, type OpenedServer } from "../../shared/server/acp-host.ts";
import { AcpHosts } from "../../shared/server/acp-hosts.ts";
import { givenAgent, markOf } from "../../shared/server/agent-digest.ts";
import type { AgentFlags } from "../../shared/server/agent-options.ts";
import { makePlan, openRuntime, type RuntimePlan } from "../../shared/server/runtime.ts";
import { serveStore, socketDirectory } from "../../shared/server/store-service.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { protocolOutput } from "../../shared/terminal/protocol-output.ts";
import { STRAY, surviveRejections } from "../../shared/unhandled-rejections.ts";

export interface BridgeFlags extends ConnectionOptions, AgentFlags {
  readonly onHangup: "cancel" | "park";
}

/** The Belay behind the bridge, and what goes with it. */
type BridgeBackend = Pick<BridgeOptions, "control" | "close" | "audit" | "notice">;

export async function startBridge(flags: BridgeFlags): Promise<number> {
  // First of all, so that nothing that is loaded from here on can print into the protocol.
  const output = protocolOutput();
  const place = await placeOf(flags);
  const { stdin: input } = process;
  let code: number = EXIT_OK;
  const deaf = onStopSignals((signal) => {
    code = EXIT_SIGNAL[signal];
    // As if the host had hung up: whoever sends a signal does not read on either.
    input.destroy();
    return "leaving";
  });
  await runBridge({ ...place, input, output, clock: systemClock, version: version(), onHangup: flags.onHangup });
  deaf();
  return code;
}

function placeOf(flags: BridgeFlags): Promise<BridgeBackend> {
  if (flags.url !== undefined || flags.socket !== undefined) return goThere(flags);
  return flags.store === undefined ? inDataDirectory(flags) : onStore(flags);
}

/** In the data directory: served here, so that any shell can stop its runs, or by a program that was faster. */
async function inDataDirectory(flags: BridgeFlags): Promise<BridgeBackend> {
  const home = openDataDir({ home: flags.home, env: process.env });
  makeDataDir(home);
  const redact = redactor();
  const log = openLog({ redact, clock: systemClock, form: formOf() });
  let plan: RuntimePlan | undefined;
  const open = async (): Promise<OpenedServer> => {
    const { composeServer } = await import("../../shared/server/compose-server.ts");
    // Once: it takes the keys of providers out of the environment.
    plan ??= await makePlan({ home, flags, server: { socket: socketOf(home), crowd: CROWD } });
    for (const secret of plan.taken.secrets) redact.add(secret);
    const house = await composeServer({ plan, tcp: false, log, redact, version: version() });
    for (const notice of house.works.notices) log.info(notice);
    return { house, store: plan.store };
  };
  const given = givenAgent(flags);
  const hosts = await AcpHosts.open({
    ...{ home, mark: markOf(flags), kind: "bridge", clock: systemClock, log, open },
    ...(given === undefined ? { joins: "any" } : {}),
  });
  const { control, kind, where, audit } = hosts;
  if (kind === "server" && given !== undefined) {
    await hosts.close(0);
    throw agentOfServer(given, where);
  }
  log.info("the bridge is open", { where, store: plan?.store });
  return {
    control,
    close: async (mode) => {
      const unfinished = await hosts.close(SHUTDOWN_MS, mode);
      return unfinished === undefined ? undefined : { unfinished };
    },
    notice: (text) => log.info(text),
    ...(audit === undefined ? {} : { audit }),
  };
}

const formOf = (): LineForm => (process.stderr.isTTY ? "pretty" : "json");

/** On a store that was named: it is no part of the data directory. Commands with the same --store find it. */
async function onStore(flags: BridgeFlags): Promise<BridgeBackend> {
  const home = openDataDir({ home: flags.home, env: process.env });
  makeDataDir(home);
  const plan = await makePlan({ home, flags });
  const log = openLog({ redact: redactor(plan.taken.secrets), clock: systemClock, form: formOf() });
  surviveRejections((error) => log.error(STRAY, { error }));
  const onNotice: Notify = ({ type, ...fields }) => log.warn(`notice: ${type}`, fields);
  const { belay, agent, notices } = await openRuntime(plan, {
    onNotice,
    loopWatch: log.form === "json" ? "json" : "text",
    ...socketDirectory(plan.store),
  });
  for (const notice of notices) log.info(notice);
  log.info("the bridge is open", { agent, store: plan.store });
  const audit = await openTrail(home, plan, log);
  const stopServing = await serveStore(belay, plan.store, (message) => log.warn(message));
  return {
    control: belay,
    close: (mode) => belay.close({ mode }).finally(stopServing),
    notice: (text) => log.info(text),
    ...(audit === undefined ? {} : { audit }),
  };
}

/** Beside the store, whose lock keeps others away from it as well. What is kept nowhere leaves no trail either. */
async function openTrail(
  home: DataDir,
  plan: RuntimePlan,
  log: ReturnType<typeof openLog>,
): Promise<Audit | undefined> {
  if (plan.store === ":memory:") return undefined;
  const folder = plan.store === home.storeFile ? home.auditDir : `${plan.store}.audit`;
  return openAuditTrail({ folder, redact: redactor(plan.taken.secrets), clock: systemClock, log });
}

/** A server keeps its own trail, and has an agent of its own: who asks for another one should not get this one. */
async function goThere(flags: BridgeFlags): Promise<BridgeBackend> {
  const connection = await openControl(flags);
  const given = givenAgent(flags);
  if (given !== undefined) {
    await connection.close();
    throw agentOfServer(given, connection.where);
  }
  process.stderr.write(`belay: the bridge goes to ${connection.where}\n`);
  return {
    control: connection.control,
    close: () => connection.close(),
    notice: (text) => void process.stderr.write(`belay: ${text}\n`),
  };
}

const agentOfServer = (given: string, where: string): ControlError =>
  new ControlError("invalid", `--${given} is for a bridge without a server, and this one goes to ${where}.`, {
    hint: "Start the server with it; or give the bridge a store of its own: --store FILE.",
  });
