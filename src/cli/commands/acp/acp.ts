// `belay acp`: serves ACP to an editor on stdin and stdout. The runs are on a server that was named or runs for this
// data directory; otherwise in this program, or in the program that another editor has started here.
//
// Invariants
// 1. Only the protocol is written to stdout: all other prints of this program go to stderr.
// 2. It exits within EXIT_MS_MAX after the end of its input, and leaves no process behind.
import type { Writable } from "node:stream";
import { ControlError } from "../../../core/errors.ts";
import { withPackage } from "../../../core/optional-package.ts";
import type { BelayControl } from "../../../ports/control.ts";
import type { AcpAgentOptions } from "../../../protocols/acp/agent/acp-agent.ts";
import { type EditorLine, editorLine } from "../../../protocols/acp/transport/stdio.ts";
import { type DataDir, makeDataDir, openDataDir, socketOf } from "../../../sdk/data-dir.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { version } from "../../../system/version.ts";
import type { AuditTrail } from "../../../telemetry/audit/audit-trail.ts";
import { type Log, openLog } from "../../../telemetry/log.ts";
import { type Redactor, redactor } from "../../../telemetry/redactor.ts";
import { openControl } from "../../shared/connect.ts";
import type { ConnectionOptions } from "../../shared/connection-options.ts";
import { EXIT_OK, EXIT_SIGNAL } from "../../shared/exit-code.ts";
import { HOST_LIMITS, type OpenedServer } from "../../shared/server/acp-host.ts";
import { AcpHosts } from "../../shared/server/acp-hosts.ts";
import { AGENT_FLAGS, agentDigestOf } from "../../shared/server/agent-digest.ts";
import type { AgentFlags } from "../../shared/server/agent-options.ts";
import type { GivenAgent, RuntimePlan } from "../../shared/server/runtime.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { protocolOutput } from "../../shared/terminal/protocol-output.ts";
import { ACP_GRACE_MS, type AtEnd, EditorDisconnect, EXIT_MS_MAX } from "./editor-disconnect.ts";

export interface AcpFlags extends Omit<ConnectionOptions, "store">, AgentFlags {
  readonly atEnd?: AtEnd;
}

/** Where the runs are. */
interface AcpBackend {
  readonly control: BelayControl;
  readonly kind: AcpHosts["kind"];
  readonly where: string;
  readonly audit?: AuditTrail | undefined;
  close(limitMs: number): Promise<unknown>;
}

export async function startAcp(flags: AcpFlags): Promise<number> {
  return withEditor(flags, async (context) => {
    if (flags.url !== undefined || flags.socket !== undefined) return { place: await connectTo(flags) };
    const home = openDataDir({ home: flags.home, env: process.env });
    const place = await openHosts(context, { home, flags, agentDigest: agentDigestOf(flags) });
    if (place.kind === "server") await refuseAgent(flags, place);
    return { place };
  });
}

const SETTINGS = {
  agent_servers: { Belay: { command: "belay", args: ["acp"], env: {} } },
};

/** Tells a user who typed `belay acp` at a terminal how to configure an editor. */
function printTerminalNotice(to: Writable): void {
  const lines = [
    "belay: this speaks ACP, the protocol between editors and agents, on stdin and stdout. Editors start it.",
    "       In the settings of an editor that knows ACP:",
    ...JSON.stringify(SETTINGS, undefined, 2)
      .split("\n")
      .map((line) => `         ${line}`),
    "       It waits for lines of JSON now. Ctrl-D ends it.",
  ];
  to.write(`${lines.join("\n")}\n`);
}

/** What exists before the backend is found. */
export interface EditorContext {
  readonly log: Log;
  readonly redact: Redactor;
}

export interface EditorBackend extends Pick<AcpAgentOptions, "onSession" | "behind"> {
  readonly place: AcpBackend;
}

/** Finds the backend, serves the editor until it disconnects, and returns the exit code. */
export async function withEditor(
  { atEnd }: Pick<AcpFlags, "atEnd">,
  findBackend: (context: EditorContext) => Promise<EditorBackend>,
): Promise<number> {
  // First, so that no module that is loaded later can print into the protocol.
  const output: Writable = protocolOutput();
  const { stdin: input } = process;
  const line = editorLine(input, output);
  let code: number = EXIT_OK;
  const unsubscribe = onStopSignals((signal) => {
    code = EXIT_SIGNAL[signal];
    // A signal is handled as if the editor had disconnected.
    line.hangUp();
    return "leaving";
  });
  if (input.isTTY) printTerminalNotice(process.stderr);
  const redact = redactor();
  const log = openLog({ redact, clock: systemClock, form: process.stderr.isTTY ? "pretty" : "json" });
  const backend = await findBackend({ log, redact });
  await serve(line, backend, { log, atEnd, exit: () => process.exit(code) });
  unsubscribe();
  return code;
}

interface Serving {
  readonly log: Log;
  readonly atEnd: AtEnd | undefined;
  readonly exit: () => void;
}

async function serve(
  line: EditorLine,
  { place, onSession, behind }: EditorBackend,
  { log, atEnd, exit }: Serving,
): Promise<void> {
  const { control, kind, where, audit } = place;
  // By default, runs in a program of an editor end with their editor, and runs on a server continue.
  const policy = atEnd ?? (kind === "editors" ? "cancel" : "keep");
  const kept = kind === "editors" ? "parked until the next start" : "it continues on the server";
  const end = new EditorDisconnect({ policy, kept, answered: line.answered, log, clock: systemClock });
  const load = () => import("../../../protocols/acp/agent/acp-agent.ts");
  const { acpAgent } = await withPackage("@agentclientprotocol/sdk", "belay acp", load);
  const connection = acpAgent({
    ...{ control, clock: systemClock, version: version(), directory: process.cwd() },
    notice: (text) => log.info(text),
    ...(audit === undefined ? {} : { audit }),
    ...(onSession === undefined ? {} : { onSession }),
    ...(behind === undefined ? {} : { behind }),
  });
  log.info("ready for an editor", { where, atEnd: policy });
  const client = connection.connect(line.stream, { atEnd: (leaving) => end.handle(leaving) });
  // A hard limit: the watchdog ends the processes of what has not come to rest by then.
  void line.ended.then(() => systemClock.after(EXIT_MS_MAX, exit, "idle"));
  await client.closed;
  await place.close(end.leftMs);
}

export interface EditorOptions {
  readonly home: DataDir;
  readonly flags: AgentFlags;
  readonly agentDigest: string;
  /** Replaces the agent that the flags name. */
  readonly agent?: GivenAgent;
}

/** Connects to the host of the data directory, or becomes the host. */
export async function openHosts({ log, redact }: EditorContext, options: EditorOptions): Promise<AcpHosts> {
  const { home, agentDigest, flags, agent } = options;
  makeDataDir(home);
  let plan: RuntimePlan | undefined;
  const open = async (): Promise<OpenedServer> => {
    const { makePlan } = await import("../../shared/server/runtime.ts");
    const { composeServer } = await import("../../shared/server/compose-server.ts");
    // Only once: it removes the provider keys from the environment.
    plan ??= withAcpGrace(await makePlan({ home, flags: { directories: "any", ...flags }, server: serverOf(home) }));
    for (const secret of plan.taken.secrets) redact.add(secret);
    const given = agent === undefined ? {} : { agent };
    const server = await composeServer({
      plan,
      tcp: false,
      log,
      redact,
      version: version(),
      first: "processes",
      ...given,
    });
    for (const notice of server.runtime.notices) log.info(notice);
    return { server, store: plan.store };
  };
  const hosts = await AcpHosts.open({ home, agentDigest, kind: "editor", open, log, clock: systemClock });
  // Preloads the server: this program may become the host later, while requests wait.
  if (hosts.kind === "editors") void import("../../shared/server/compose-server.ts");
  return hosts;
}

const serverOf = (home: DataDir) => ({ socket: socketOf(home), crowd: HOST_LIMITS });

const withAcpGrace = (plan: RuntimePlan): RuntimePlan => ({
  ...plan,
  config: { ...plan.config, limits: { graceMs: ACP_GRACE_MS, ...plan.config.limits } },
});

async function connectTo(flags: AcpFlags): Promise<AcpBackend> {
  const { control, where, close } = await openControl(flags, process.env, { patienceMs: PATIENCE_MS });
  const place = { control, kind: "server", where, close } as const;
  await refuseAgent(flags, place);
  return place;
}

/** How long a server may be gone: an editor cannot do better than wait. */
const PATIENCE_MS = 60_000;

/** Refuses options that select an agent if the runs are on a server, which has its own agent. */
async function refuseAgent(flags: AgentFlags, place: AcpBackend): Promise<void> {
  const given = AGENT_FLAGS.find((name) => flags[name] !== undefined);
  if (given === undefined) return;
  await place.close(0);
  const message = `--${given} is for work without a server, and this editor's goes to ${place.where}.`;
  throw new ControlError("invalid", message, {
    hint: "Start the server with it; or give the editor its own home: --home DIR.",
  });
}
