// Belay as an agent of the Agent Client Protocol, on any stream, in either version of the protocol.
//
// Invariants
// 1. Every prompt is answered once, after all updates of its run. A cancel is a result, not an error.
// 2. A client that disconnects stops nothing. The owner of the connection decides what happens to its runs.
import { resolve } from "node:path";
import type { AnyMessage, Stream } from "@agentclientprotocol/sdk";
import { agentProtocolRouter } from "@agentclientprotocol/sdk/experimental/v2";
import { invalid, isObject, rejectUnknown } from "../../../core/input.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { BelayControl, RunControl } from "../../../ports/control.ts";
import { systemClock } from "../../../system/system-clock.ts";
import { version } from "../../../system/version.ts";
import { type AcpClientInfo, LOCAL_USER } from "./acp-client-info.ts";
import { AcpSessions, type OpenedSession } from "./acp-sessions.ts";
import type { AgentBehind } from "./agent-behind.ts";
import type { Audit } from "./audit.ts";
import { loopTurn } from "./loop-turn.ts";
import { v1App } from "./versions/v1-app.ts";
import { v2App } from "./versions/v2-app.ts";

export interface AcpAgentOptions {
  readonly control: BelayControl;
  readonly clock: Clock;
  /** Belay's version. */
  readonly version: string;
  /** The identity and permissions of the client. Default: the local user, with all permissions. */
  readonly client?: AcpClientInfo;
  /** The working directory of sessions that were created without one. */
  readonly directory?: string;
  readonly audit?: Audit;
  /** Reports a problem to the operator. */
  readonly notice?: (text: string) => void;
  /** The external agent behind Belay, if one in this program does the work. */
  readonly behind?: AgentBehind;
  /**
   * Called when a client opens a session, before the request is answered, with the resources that the client provided.
   */
  readonly onSession?: (session: OpenedSession) => void;
}

export interface AcpAgent {
  /** Connects a client. The signature is also the one that the SDK expects of an agent. */
  connect(stream: Stream, options?: ConnectOptions): AcpConnection;
}

export interface ConnectOptions {
  /**
   * Called when the input has ended. The connection is closed when it resolves. Until then answers are still sent, to
   * a client that has closed its end and still reads.
   */
  readonly atEnd?: (client: AcpConnection) => Promise<void>;
}

export interface AcpConnection {
  readonly closed: Promise<void>;
  /** The runs started through this connection that are not answered yet. */
  readonly runs: readonly RunControl[];
  /** Resolves when every prompt of this connection is answered. */
  settled(): Promise<void>;
}

export interface CreateAcpAgentOptions
  extends Pick<AcpAgentOptions, "client" | "directory" | "audit" | "notice" | "onSession"> {}

/** Makes Belay an agent that editors can connect to, on any stream: `createAcpAgent(belay).connect(stream)`. */
export function createAcpAgent(belay: BelayControl, options: CreateAcpAgentOptions = {}): AcpAgent {
  if (!isObject(options)) throw invalid("The options of createAcpAgent() must be an object.");
  const { client, directory, audit, notice, onSession, ...rest } = options;
  rejectUnknown(rest, "createAcpAgent()");
  return acpAgent({ control: belay, clock: systemClock, version: version(), directory: resolve("."), ...options });
}

export function acpAgent(options: AcpAgentOptions): AcpAgent {
  return { connect: (stream, connecting) => startConnection(options, stream, connecting?.atEnd) };
}

function startConnection(options: AcpAgentOptions, stream: Stream, atEnd: ConnectOptions["atEnd"]): AcpConnection {
  const { control, clock, client = LOCAL_USER, directory = "/", audit, notice = () => {} } = options;
  const { version: named, onSession, behind } = options;
  const context = new AcpSessions({ control, clock, client, directory, audit, notice, onSession, behind });
  const router = agentProtocolRouter().withV1(v1App(context, named)).withV2(v2App(context, named));
  const ordered = inOrder(stream, async () => {
    await atEnd?.(here).catch((error: unknown) => notice(`Ending a connection failed: ${String(error)}`));
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

/**
 * Delivers messages to their handlers one after the other, in order of arrival.
 *
 * A handler has started before the next message is delivered. Otherwise a cancel could overtake an earlier prompt,
 * because the SDK walks a list of handlers and awaits each of them. When the input ends, `atEnd` runs before the stream
 * closes. Until then answers are still sent.
 */
export function inOrder(stream: Stream, atEnd: () => Promise<void>): Stream {
  const reader = stream.readable.getReader();
  const readable = new ReadableStream<AnyMessage>(
    {
      async pull(controller) {
        const next = await reader.read().catch((error: unknown) => ({ error }));
        // The steps between arrival and handler only await resolved promises, so they are done in the next turn. The
        // end of the input waits for them too, because `atEnd` must include a prompt that came last.
        await loopTurn();
        if ("value" in next && next.value !== undefined) {
          controller.enqueue(next.value);
          return;
        }
        await atEnd();
        if ("error" in next) controller.error(next.error);
        else controller.close();
      },
      cancel: (reason) => reader.cancel(reason),
    },
    // No read-ahead: a message that was read has been delivered.
    { highWaterMark: 0 },
  );
  return { readable, writable: stream.writable };
}

export type { AcpClientInfo, Audit, OpenedSession };
