// `belay acp`: an editor's agent, on stdin and stdout. Done by a server that was named or runs for this home; else by
// this program and those that other editors have started here.
//
// Invariants
// 1. Nothing but the protocol is written to stdout: whatever else is printed in this program goes to stderr.
// 2. It ends within EXIT_MS_MAX of its input, whatever it was doing, and leaves no process behind.
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
import { CROWD, type OpenedServer } from "../../shared/server/acp-host.ts";
import { AcpHosts } from "../../shared/server/acp-hosts.ts";
import { AGENT_FLAGS, markOf } from "../../shared/server/agent-digest.ts";
import type { AgentFlags } from "../../shared/server/agent-options.ts";
import type { GivenAgent, RuntimePlan } from "../../shared/server/runtime.ts";
import { onStopSignals } from "../../shared/stop-signals.ts";
import { protocolOutput } from "../../shared/terminal/protocol-output.ts";
import { ACP_GRACE_MS, type AtEnd, EditorDisconnect, EXIT_MS_MAX } from "./editor-disconnect.ts";
import { printTerminalNotice } from "./terminal-notice.ts";

export interface AcpFlags extends Omit<ConnectionOptions, "store">, AgentFlags {
  readonly atEnd?: AtEnd;
}

/** Where the work is done. */
interface AcpBackend {
  readonly control: BelayControl;
  readonly kind: AcpHosts["kind"];
  readonly where: string;
  readonly audit?: AuditTrail | undefined;
  close(limitMs: number): Promise<unknown>;
}

export async function startAcp(flags: AcpFlags): Promise<number> {
  return withEditor(flags, async (context) => {
    if (flags.url !== undefined || flags.socket !== undefined) return { place: await goThere(flags) };
    const home = openDataDir({ home: flags.home, env: process.env });
    const place = await amongEditors(context, { home, flags, mark: markOf(flags) });
    if (place.kind === "server") await refuseAgent(flags, place);
    return { place };
  });
}

/** What is there before the place is. */
export interface EditorContext {
  readonly log: Log;
  readonly redact: Redactor;
}

export interface Seated extends Pick<AcpAgentOptions, "onSession" | "behind"> {
  readonly place: AcpBackend;
}

/** Finds a seat for the editor, serves it until it is gone, and leaves. */
export async function withEditor(
  { atEnd }: Pick<AcpFlags, "atEnd">,
  seat: (context: EditorContext) => Promise<Seated>,
): Promise<number> {
  // First of all, so that nothing that is loaded from here on can print into the protocol.
  const output: Writable = protocolOutput();
  const { stdin: input } = process;
  const line = editorLine(input, output);
  let code: number = EXIT_OK;
  const deaf = onStopSignals((signal) => {
    code = EXIT_SIGNAL[signal];
    // As if the editor had hung up: whoever sends a signal does not read on either.
    line.hangUp();
    return "leaving";
  });
  if (input.isTTY) printTerminalNotice(process.stderr);
  const redact = redactor();
  const log = openLog({ redact, clock: systemClock, form: process.stderr.isTTY ? "pretty" : "json" });
  const seated = await seat({ log, redact });
  await serve(line, seated, { log, atEnd, exit: () => process.exit(code) });
  deaf();
  return code;
}

interface Serving {
  readonly log: Log;
  readonly atEnd: AtEnd | undefined;
  readonly exit: () => void;
}

async function serve(
  line: EditorLine,
  { place, onSession, behind }: Seated,
  { log, atEnd, exit }: Serving,
): Promise<void> {
  const { control, kind, where, audit } = place;
  // What is done here goes with the editor, and so do its runs. A server stays, and goes on.
  const policy = atEnd ?? (kind === "editors" ? "cancel" : "keep");
  const kept = kind === "editors" ? "set down, and taken up at the next start" : "it goes on at the server";
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
  const client = connection.connect(line.stream, { atEnd: (leaving) => end.come(leaving) });
  // Whatever does not come to rest is left: its processes are ended by whoever watches over them.
  void line.ended.then(() => systemClock.after(EXIT_MS_MAX, exit, "idle"));
  await client.closed;
  await place.close(end.leftMs);
}

export interface EditorOptions {
  readonly home: DataDir;
  readonly flags: AgentFlags;
  /** A digest of the agent. */
  readonly mark: string;
  /** Works instead of the one that the flags name. */
  readonly agent?: GivenAgent;
}

export async function amongEditors({ log, redact }: EditorContext, options: EditorOptions): Promise<AcpHosts> {
  const { home, mark, flags, agent } = options;
  makeDataDir(home);
  let plan: RuntimePlan | undefined;
  const open = async (): Promise<OpenedServer> => {
    const { makePlan } = await import("../../shared/server/runtime.ts");
    const { composeServer } = await import("../../shared/server/compose-server.ts");
    // Once: it takes the keys of providers out of the environment.
    plan ??= gentle(await makePlan({ home, flags: { directories: "any", ...flags }, server: serverOf(home) }));
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
    for (const notice of server.works.notices) log.info(notice);
    return { house: server, store: plan.store };
  };
  const server = await AcpHosts.open({ home, mark, kind: "editor", open, log, clock: systemClock });
  // A guest may have to take over, and then somebody waits.
  if (server.kind === "editors") void import("../../shared/server/compose-server.ts");
  return server;
}

const serverOf = (home: DataDir) => ({ socket: socketOf(home), crowd: CROWD });

const gentle = (plan: RuntimePlan): RuntimePlan => ({
  ...plan,
  config: { ...plan.config, limits: { graceMs: ACP_GRACE_MS, ...plan.config.limits } },
});

async function goThere(flags: AcpFlags): Promise<AcpBackend> {
  const { control, where, close } = await openControl(flags, process.env, { patienceMs: PATIENCE_MS });
  const place = { control, kind: "server", where, close } as const;
  await refuseAgent(flags, place);
  return place;
}

/** How long a server may be gone. An editor has no better idea than to wait for it. */
const PATIENCE_MS = 60_000;

/** A server has an agent of its own, and who asks for another one should not get this one. */
async function refuseAgent(flags: AgentFlags, place: AcpBackend): Promise<void> {
  const given = AGENT_FLAGS.find((name) => flags[name] !== undefined);
  if (given === undefined) return;
  await place.close(0);
  const message = `--${given} is for work without a server, and this editor's goes to ${place.where}.`;
  throw new ControlError("invalid", message, {
    hint: "Start the server with it; or give the editor a home of its own: --home DIR.",
  });
}
