// `belay bridge`: serves Belay to its parent program on stdin and stdout. Without --url, --socket or --store it serves
// the data directory while it runs, or connects to the program that serves it already.
//
// Invariants
// 1. Only the protocol is written to stdout: all other prints of this program go to stderr.
// 2. If the parent program exits, the bridge ends or parks its runs before it exits.

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
import { HOST_LIMITS, type OpenedServer } from "../../shared/server/acp-host.ts";
import { AcpHosts } from "../../shared/server/acp-hosts.ts";
import { agentDigestOf, givenAgent } from "../../shared/server/agent-digest.ts";
import type { AgentFlags } from "../../shared/server/agent-options.ts";
import { makePlan, openRuntime, type RuntimePlan } from "../../shared/server/runtime.ts";
import { serveStore, socketDirectory } from "../../shared/server/store-service.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { protocolOutput } from "../../shared/terminal/protocol-output.ts";
import { surviveRejections, UNHANDLED_REJECTION } from "../../shared/unhandled-rejections.ts";

export interface BridgeFlags extends ConnectionOptions, AgentFlags {
  readonly onHangup: "cancel" | "park";
}

/** The Belay that the bridge serves. */
type BridgeBackend = Pick<BridgeOptions, "control" | "close" | "audit" | "notice">;

export async function startBridge(flags: BridgeFlags): Promise<number> {
  // First, so that no module that is loaded later can print into the protocol.
  const output = protocolOutput();
  const place = await placeOf(flags);
  const { stdin: input } = process;
  let code: number = EXIT_OK;
  const unsubscribe = onStopSignals((signal) => {
    code = EXIT_SIGNAL[signal];
    // A signal is handled as if the parent had disconnected.
    input.destroy();
    return "leaving";
  });
  await runBridge({ ...place, input, output, clock: systemClock, version: version(), onHangup: flags.onHangup });
  unsubscribe();
  return code;
}

function placeOf(flags: BridgeFlags): Promise<BridgeBackend> {
  if (flags.url !== undefined || flags.socket !== undefined) return connectTo(flags);
  return flags.store === undefined ? inDataDirectory(flags) : onStore(flags);
}

/** Uses the data directory, which this program serves so that any shell can stop its runs, unless another does. */
async function inDataDirectory(flags: BridgeFlags): Promise<BridgeBackend> {
  const home = openDataDir({ home: flags.home, env: process.env });
  makeDataDir(home);
  const redact = redactor();
  const log = openLog({ redact, clock: systemClock, form: formOf() });
  let plan: RuntimePlan | undefined;
  const open = async (): Promise<OpenedServer> => {
    const { composeServer } = await import("../../shared/server/compose-server.ts");
    // Only once: it removes the provider keys from the environment.
    plan ??= await makePlan({ home, flags, server: { socket: socketOf(home), crowd: HOST_LIMITS } });
    for (const secret of plan.taken.secrets) redact.add(secret);
    const server = await composeServer({ plan, tcp: false, log, redact, version: version() });
    for (const notice of server.runtime.notices) log.info(notice);
    return { server, store: plan.store };
  };
  const given = givenAgent(flags);
  const hosts = await AcpHosts.open({
    ...{ home, agentDigest: agentDigestOf(flags), kind: "bridge", clock: systemClock, log, open },
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

/** Uses a named store, outside of the data directory. Commands with the same --store find it. */
async function onStore(flags: BridgeFlags): Promise<BridgeBackend> {
  const home = openDataDir({ home: flags.home, env: process.env });
  makeDataDir(home);
  const plan = await makePlan({ home, flags });
  const log = openLog({ redact: redactor(plan.taken.secrets), clock: systemClock, form: formOf() });
  surviveRejections((error) => log.error(UNHANDLED_REJECTION, { error }));
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

/** Opens the audit trail beside the store, whose lock protects it too. A store in memory has no trail. */
async function openTrail(
  home: DataDir,
  plan: RuntimePlan,
  log: ReturnType<typeof openLog>,
): Promise<Audit | undefined> {
  if (plan.store === ":memory:") return undefined;
  const folder = plan.store === home.storeFile ? home.auditDir : `${plan.store}.audit`;
  return openAuditTrail({ folder, redact: redactor(plan.taken.secrets), clock: systemClock, log });
}

/** Connects to a server. It keeps its own audit trail, and has its own agent: options for another one are refused. */
async function connectTo(flags: BridgeFlags): Promise<BridgeBackend> {
  const connection = await openControl(flags);
  const given = givenAgent(flags);
  if (given !== undefined) {
    await connection.close();
    throw agentOfServer(given, connection.where);
  }
  process.stderr.write(`belay: the bridge connects to ${connection.where}\n`);
  return {
    control: connection.control,
    close: () => connection.close(),
    notice: (text) => void process.stderr.write(`belay: ${text}\n`),
  };
}

const agentOfServer = (given: string, where: string): ControlError =>
  new ControlError("invalid", `--${given} is for a bridge without a server, and this one goes to ${where}.`, {
    hint: "Start the server with it; or give the bridge its own store: --store FILE.",
  });
