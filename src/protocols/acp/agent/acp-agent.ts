// The door for editors: Belay as an agent of the Agent Client Protocol, on any stream, in either of its versions.
//
// Invariants
// 1. Every prompt is answered once, after everything of its run was told. A cancel is a result.
// 2. A client that leaves stops nothing. What becomes of what it had begun is for whoever opened the door to say.
import type { Stream } from "@agentclientprotocol/sdk";
import { agentProtocolRouter } from "@agentclientprotocol/sdk/experimental/v2";
import type { Clock } from "../../../ports/clock.ts";
import type { BelayControl, RunControl } from "../../../ports/control.ts";
import { type AcpClientInfo, LOCAL_USER } from "./acp-client-info.ts";
import { AcpSessions, type OpenedSession } from "./acp-sessions.ts";
import type { AgentBehind } from "./agent-behind.ts";
import type { Audit } from "./audit.ts";
import { inOrder } from "./intake.ts";
import { v1App } from "./versions/v1-app.ts";
import { v2App } from "./versions/v2-app.ts";

export interface AcpAgentOptions {
  readonly control: BelayControl;
  readonly clock: Clock;
  /** Of Belay. */
  readonly version: string;
  /** Who comes in. Default: the user of this machine, who may do everything. */
  readonly client?: AcpClientInfo;
  /** Where a session works that was made without a directory. */
  readonly directory?: string;
  readonly audit?: Audit;
  /** Something for the operator. */
  readonly notice?: (text: string) => void;
  /** The agent behind Belay, where the work is done by one in this program. */
  readonly behind?: AgentBehind;
  /** Told when a client opens a session, before that is answered: what it brought along for it. */
  readonly onSession?: (session: OpenedSession) => void;
}

export interface AcpAgent {
  /** Also what the SDK wants of an agent that is connected to a transport of its own. */
  connect(stream: Stream, options?: ConnectOptions): AcpConnection;
}

export interface ConnectOptions {
  /**
   * Called when the input has ended. The connection is closed when it resolves; until then answers still go out, to a
   * client that has closed its end and still listens.
   */
  readonly atEnd?: (client: AcpConnection) => Promise<void>;
}

export interface AcpConnection {
  readonly closed: Promise<void>;
  /** The runs begun through this connection that were not answered yet. */
  readonly runs: readonly RunControl[];
  /** Resolves when every prompt that was sent through this connection is answered. */
  settled(): Promise<void>;
}

export function acpAgent(options: AcpAgentOptions): AcpAgent {
  return { connect: (stream, connecting) => startConnection(options, stream, connecting?.atEnd) };
}

function startConnection(options: AcpAgentOptions, stream: Stream, atEnd: ConnectOptions["atEnd"]): AcpConnection {
  const { control, clock, version, client: guest = LOCAL_USER, directory = "/", audit, notice = () => {} } = options;
  const { onSession, behind } = options;
  const context = new AcpSessions({ control, clock, guest, directory, audit, notice, onSession, behind });
  const router = agentProtocolRouter().withV1(v1App(context, version)).withV2(v2App(context, version));
  const ordered = inOrder(stream, async () => {
    await atEnd?.(here).catch((error: unknown) => notice(`The end of a connection has failed: ${String(error)}`));
  });
  const { closed } = router.connect(ordered);
  const here: AcpConnection = {
    closed: closed.finally(() => context.leave()),
    get runs() {
      return context.prompts.map((own) => own.run);
    },
    settled: async () => void (await Promise.allSettled(context.prompts.map((own) => own.ended))),
  };
  return here;
}

export type { AcpClientInfo, Audit, OpenedSession };
