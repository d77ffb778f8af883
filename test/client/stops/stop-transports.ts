// The ways on which a stop travels: each has every method that stops, or says why it has none.
import { tmpdir } from "node:os";
import { runCancel } from "../../../src/cli/commands/cancel/cancel.ts";
import { runDelete } from "../../../src/cli/commands/delete/delete.ts";
import { runQueue } from "../../../src/cli/commands/queue/queue.ts";
import type { RunFlags } from "../../../src/cli/commands/run/run-options.ts";
import { startRun } from "../../../src/cli/commands/run/run-start.ts";
import { runStopAll } from "../../../src/cli/commands/stop-all/stop-all.ts";
import { connectBelay } from "../../../src/client/belay-client.ts";
import type { Fetch, FetchInit } from "../../../src/client/transport/reply.ts";
import type { BelayControl, RunControl } from "../../../src/ports/control.ts";
import { acpAgent } from "../../../src/protocols/acp/agent/acp-agent.ts";
import { systemClock } from "../../../src/system/system-clock.ts";
import { greeting, RawClient } from "../../acp/raw-client.ts";
import type { Fields, Message, Version } from "../../acp/transcript.ts";
import { InMemoryHost } from "../../fixtures/bridge-host.ts";
import { type FaultyTransport, faultyTransport, type TransportFault } from "../../fixtures/faulty-transport.ts";
import { inMemoryServer } from "../../fixtures/in-memory-server.ts";
import { type RealServer, realServer } from "../../fixtures/real-server.ts";
import { FaultySocket } from "./faulty-socket.ts";
import { pipelinedFetch } from "./pipelined-fetch.ts";
import type { Prompter, StoppableServer, Target } from "./stop-fixture.ts";
import { hasOwnSession, type InFlight, isProcess, type Method, type Network as NetworkKind } from "./stop-methods.ts";

/** A stop, or why there is none: `target` undefined is the prompt that was sent last. */
type Stop = (target: Target) => Promise<unknown>;

export interface Way {
  newSession(): Promise<string>;
  /** Sends a prompt in this tick. Undefined: prompts are not sent this way. */
  readonly prompt: Prompter | undefined;
  /** Before anything is sent: handles that a caller would have. */
  prepare?(target: Target): Promise<void>;
  readonly stops: Readonly<Record<Method, Stop | string>>;
  /** What a protocol does not let a method stop, and why. */
  readonly spares?: Readonly<Partial<Record<Method, Partial<Record<InFlight, string>>>>>;
  /** One program, one prompt: nothing is prompted behind a stop. */
  readonly promptsOnce?: true;
  /** Behind what, besides stops of a whole session, no prompt is sent here, and why. */
  follows?(method: Method, target: Target): string | undefined;
  /** Why patience does not end here. */
  readonly untilAnswered?: string;
  /** What happens to requests on the network. Undefined: there is none. */
  readonly network: Network | undefined;
  restart(): Promise<void>;
  close(): Promise<void>;
}

interface Network {
  /** Resolves when the request has met it. */
  plan(what: "prompt" | "stop", fault: TransportFault): Promise<void>;
  /** From now on a proxy answers these requests with 502. The server still receives the first. */
  behindProxy?(what: "prompt" | "stop"): void;
  /** Resolves when a stop was answered, whatever its caller waits for besides. */
  readonly stopAnswered: Promise<void>;
}

export type OpenWay = (server: StoppableServer, network: NetworkKind) => Promise<Way>;

/** What a proxy answers is waited out as long as there is patience, in real time. */
const patience = (network: NetworkKind) => (network === "answer lost, then 502" ? { patienceMs: 300 } : {});

const PROMPT = /^POST \/v1\/(runs|sessions\/[^/]+\/runs)$/;
const STOP = /^(DELETE |POST .*\/(cancel|delete)$)/;

/** Where a client that has no WebSocket sends what its event stream answers. */
const CARRIER = "POST /v1/stream";

/** The stop among these messages. */
function stopIn(body = "{}"): string | undefined {
  const { messages = [] } = JSON.parse(body) as { messages?: { type: string; method: string; path: string }[] };
  const stop = messages.find(({ type, method }) => type === "request" && method !== "GET");
  return stop && `${stop.method} ${stop.path}`;
}

/** Finds the requests that are meant, whatever their path is, and forgets a fault once it has met one. */
class Line {
  readonly #faulty: FaultyTransport;
  readonly #plans: { readonly what: RegExp; readonly fault: TransportFault; readonly met: () => void }[] = [];

  readonly #proxies: { readonly what: RegExp; hasDelivered: boolean }[] = [];

  constructor(fetch: Fetch) {
    this.#faulty = faultyTransport(fetch);
  }

  behindProxy(what: "prompt" | "stop"): void {
    this.#proxies.push({ what: what === "prompt" ? PROMPT : STOP, hasDelivered: false });
  }

  readonly #stopAnswered = Promise.withResolvers<void>();
  readonly stopAnswered: Promise<void> = this.#stopAnswered.promise;
  readonly #promptSent = Promise.withResolvers<void>();
  readonly promptSent: Promise<void> = this.#promptSent.promise;
  readonly #promptAnswered = Promise.withResolvers<void>();
  readonly promptAnswered: Promise<void> = this.#promptAnswered.promise;

  readonly fetch: Fetch = async (url, init: FetchInit) => {
    const line = `${init.method} ${new URL(url).pathname}`;
    const carried = line === CARRIER ? stopIn(init.body) : undefined;
    const proxy = this.#proxies.find(({ what }) => what.test(carried ?? line));
    if (proxy !== undefined) {
      if (!proxy.hasDelivered) await this.#faulty.fetch(url, init);
      proxy.hasDelivered = true;
      return new Response("<h1>Bad gateway</h1>", { status: 502 });
    }
    for (const plan of this.#plans.filter(({ what }) => what.test(carried ?? line))) {
      this.#plans.splice(this.#plans.indexOf(plan), 1);
      void this.#faulty.plan(line, 1, plan.fault).met.then(plan.met);
    }
    if (PROMPT.test(line)) this.#promptSent.resolve();
    const reply = await this.#faulty.fetch(url, init);
    if (PROMPT.test(line)) this.#promptAnswered.resolve();
    if (STOP.test(carried ?? line)) this.#stopAnswered.resolve();
    return reply;
  };

  plan(what: "prompt" | "stop", fault: TransportFault): Promise<void> {
    return new Promise((met) => this.#plans.push({ what: what === "prompt" ? PROMPT : STOP, fault, met }));
  }
}

/** The way of a program that holds a control: the library, or a client. */
function controlled(control: BelayControl): Pick<Way, "newSession" | "prompt" | "prepare" | "stops"> {
  let run: RunControl | undefined;
  const session = ({ session }: Target) => control.session(session);
  const process = async ({ session, id = "" }: Target) => control.session(session).processes.get(id);
  let prepared: Awaited<ReturnType<typeof process>> | undefined;
  return {
    newSession: async () => (await control.createSession()).id,
    prompt: (target, text) => {
      const own = hasOwnSession(target.inFlight);
      const { key } = target;
      const sent = own ? control.prompt(text, { key }) : control.session(target.session).prompt(text, { key });
      run ??= sent;
      return sent.accepted;
    },
    prepare: async (target) => {
      if (target.runId !== undefined) run = await control.run(target.runId);
      if (isProcess(target.inFlight)) prepared = await process(target);
    },
    stops: {
      "belay.cancel": ({ id, session }) => control.cancel(id ?? session),
      "belay.cancelPrompt": ({ key }) => control.cancelPrompt(key),
      "belay.cancelAll": () => control.cancelAll(),
      "session.cancel": (target) => session(target).cancel(),
      "session.cancelCall": (target) => session(target).cancelCall(target.id ?? ""),
      "session.cancelPrompt": (target) => session(target).cancelPrompt(target.key),
      "session.close": (target) => session(target).close(),
      "session.delete": (target) => session(target).delete(),
      "run.cancel": async () => run?.cancel(),
      "process.cancel": async () => prepared?.cancel(),
      "queue.withdraw": (target) => session(target).queue.withdraw(target.id ?? ""),
      "queue.clear": (target) => session(target).queue.clear(),
    },
  };
}

export const library: OpenWay = async (server) => ({
  // After a restart it is another Belay.
  ...controlled(new Proxy({} as BelayControl, { get: (_, name) => bound(server.belay, name) })),
  network: undefined,
  restart: () => server.restart(),
  close: async () => {},
});

function bound(belay: object, name: string | symbol): unknown {
  const value: unknown = Reflect.get(belay, name);
  return typeof value === "function" ? value.bind(belay) : value;
}

interface InMemory {
  readonly control: BelayControl;
  readonly line: Line;
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** A client whose requests end in a handler in memory. */
async function inMemory(server: StoppableServer, network: NetworkKind, streams?: "shared"): Promise<InMemory> {
  let served = inMemoryServer(server.belay);
  const line = new Line((url, init) => served.fetch(url, init));
  const control = await connectBelay({
    url: served.url,
    token: served.token,
    fetch: line.fetch,
    ...patience(network),
    ...(streams && { streams }),
  });
  return {
    control,
    line,
    restart: async () => {
      await server.restart();
      served = inMemoryServer(server.belay);
    },
    close: () => control.close(),
  };
}

const throughHandler =
  (streams?: "shared"): OpenWay =>
  async (server, network) => {
    const { control, line, restart, close } = await inMemory(server, network, streams);
    return { ...controlled(control), network: line, restart, close };
  };

export const client: OpenWay = throughHandler();
export const eventStream: OpenWay = throughHandler("shared");

/** A server on a port that it keeps when it is restarted. */
class OnPort {
  served: RealServer;
  readonly #server: StoppableServer;

  private constructor(server: StoppableServer, served: RealServer) {
    this.#server = server;
    this.served = served;
  }

  static async open(server: StoppableServer): Promise<OnPort> {
    return new OnPort(server, await realServer(server.belay));
  }

  async restart(): Promise<void> {
    const port = Number(new URL(this.served.url).port);
    await this.served.close();
    await this.#server.restart();
    this.served = await realServer(this.#server.belay, port);
  }
}

export const pipelined: OpenWay = async (server, network) => {
  const place = await OnPort.open(server);
  const fetch = pipelinedFetch();
  const line = new Line(fetch);
  const { url, token } = place.served;
  const control = await connectBelay({ url, token, fetch: line.fetch, ...patience(network) });
  return {
    ...controlled(control),
    network: line,
    restart: () => place.restart(),
    close: async () => {
      await control.close();
      fetch.close();
      await place.served.close();
    },
  };
};

/** Where the platform's own `fetch` is used, by the address of the server. */
const lines = new Map<string, Line>();

export function withFaultyPlatform(): () => void {
  const { fetch, WebSocket } = globalThis;
  const faulty = (url: string, init: FetchInit) => (lines.get(new URL(url).host)?.fetch ?? fetch)(url, init as never);
  Object.assign(globalThis, { fetch: faulty, WebSocket: FaultySocket });
  return () => void Object.assign(globalThis, { fetch, WebSocket });
}

const platformFetch = globalThis.fetch as unknown as Fetch;

async function onPlatform(server: StoppableServer): Promise<{ readonly place: OnPort; readonly line: Line }> {
  const place = await OnPort.open(server);
  const line = new Line(platformFetch);
  lines.set(new URL(place.served.url).host, line);
  return { place, line };
}

/** A stop takes one of two ways: a request of its own, or the WebSocket. */
const platformNetwork = (url: string, line: Line): Network => ({
  stopAnswered: Promise.race([line.stopAnswered, FaultySocket.stopAnswered(url)]),
  plan: (what, fault) => {
    const { kind } = fault;
    const isSockets = kind === "hold-request" || kind === "copy-later" || kind === "drop-answer";
    const met = line.plan(what, fault);
    return what === "stop" && isSockets ? Promise.race([met, FaultySocket.plan(url, fault)]) : met;
  },
});

export const webSocket: OpenWay = async (server, network) => {
  const { place, line } = await onPlatform(server);
  const { url, token } = place.served;
  const control = await connectBelay({ url, token, ...patience(network) });
  const parts = controlled(control);
  return {
    ...parts,
    network: { ...platformNetwork(url, line), behindProxy: (what) => line.behindProxy(what) },
    restart: () => place.restart(),
    close: async () => {
      await control.close();
      await place.served.close();
      lines.delete(new URL(url).host);
      FaultySocket.forget(url);
    },
  };
};

export const bridge: OpenWay = async (server, network) => {
  const { control, line, restart, close } = await inMemory(server, network);
  const host = new InMemoryHost({ control });
  const stop = (method: string, params: object) => host.ask(method, params);
  const runOf = ({ runId, key }: Target) => (runId === undefined ? { requestId: key } : { runId });
  const callOf = ({ session, id }: Target) => ({ sessionId: session, callId: id });
  const byId: Stop = (target) => {
    if (target.id === undefined) return stop("session/cancel", { sessionId: target.session });
    if (target.inFlight === "a call") return stop("session/cancel_tool_call", callOf(target));
    if (target.inFlight === "a question") return stop("question/cancel", { questionId: target.id });
    if (isProcess(target.inFlight)) return stop("process/cancel", { processId: target.id });
    return stop("run/cancel", runOf(target));
  };
  return {
    newSession: () => host.newSession(),
    prompt: ({ session, key }, prompt) => {
      host.send({ id: key, method: "session/prompt", params: { sessionId: session, prompt, key } });
      return Promise.race([host.told("run/accepted", ({ requestId }) => requestId === key), host.answer(key)]);
    },
    stops: {
      "belay.cancel": byId,
      "belay.cancelPrompt": NO_OWN_SESSION,
      "belay.cancelAll": "a host stops its sessions one by one, or shuts the bridge down",
      "session.cancel": ({ session }) => stop("session/cancel", { sessionId: session }),
      "session.cancelCall": (target) => stop("session/cancel_tool_call", callOf(target)),
      "session.cancelPrompt": ({ session, key }) => stop("run/cancel", { sessionId: session, promptKey: key }),
      "session.close": "a host stops a session; it does not end it",
      "session.delete": "a host stops a session; it does not delete it",
      "run.cancel": (target) => stop("run/cancel", runOf(target)),
      "process.cancel": ({ id }) => stop("process/cancel", { processId: id }),
      "queue.withdraw": ({ session, id }) => stop("queue/withdraw", { sessionId: session, runId: id }),
      "queue.clear": ({ session }) => stop("session/cancel", { sessionId: session, only: "queue" }),
    },
    network: line,
    restart,
    close: async () => {
      host.input.end();
      await close();
      await host.over;
    },
  };
};

const NO_OWN_SESSION = "a prompt names its session";

const acp =
  (version: Version): OpenWay =>
  async (server, network) => {
    const { control, line, restart, close } = await inMemory(server, network);
    const editor = RawClient.connect(acpAgent({ control, clock: systemClock, version: "0" }), version);
    await editor.ask("initialize", greeting(version));
    const unsent: Message[] = [];
    const send = (message: Message): void => {
      if (unsent.length === 0) queueMicrotask(() => void editor.send(...unsent.splice(0)));
      unsent.push(message);
    };
    const ask = (request: Message) => {
      send(request);
      return editor.answer(request.id);
    };
    const notify = async (method: string, params: Fields) => send({ jsonrpc: "2.0", method, params });
    const stop = (method: string, params: Fields) => ask(editor.request(method, params));
    // Answered in this form, so that it is known when it was carried out.
    const cancelSession: Stop = ({ session }) => stop("session/cancel", { sessionId: session });
    let prompted: unknown;
    const byId: Stop = (target) => {
      const { id, session } = target;
      if (id === undefined) return cancelSession(target);
      if (target.inFlight === "a call") return stop("_belay/tool_call/cancel", { sessionId: session, toolCallId: id });
      if (isProcess(target.inFlight) && version === 2)
        return stop("terminal/cancel", { sessionId: session, terminalId: id });
      // What has no method of its own is stopped with its session, or its run.
      if (target.runId === undefined) return cancelSession(target);
      return stop("_belay/run/cancel", { runId: target.runId });
    };
    return {
      follows: () => "a prompt is answered when it ends, which it does not behind a stop of one thing",
      newSession: () => editor.newSession(tmpdir()),
      prompt: ({ session }, text) => {
        const request = editor.prompt(session, text);
        prompted ??= request.id;
        return ask(request);
      },
      stops: {
        "belay.cancel": byId,
        "belay.cancelPrompt": NO_OWN_SESSION,
        "belay.cancelAll": "an editor stops its sessions one by one",
        "session.cancel": cancelSession,
        "session.cancelCall": ({ session, id }) =>
          stop("_belay/tool_call/cancel", { sessionId: session, toolCallId: id }),
        "session.cancelPrompt": "the protocol has no keys",
        "session.close": ({ session }) => stop("session/close", { sessionId: session }),
        "session.delete": ({ session }) => stop("session/delete", { sessionId: session }),
        "run.cancel": ({ runId }) =>
          runId === undefined
            ? notify("$/cancel_request", { requestId: prompted })
            : stop("_belay/run/cancel", { runId }),
        "process.cancel":
          version === 2
            ? ({ session, id }) => stop("terminal/cancel", { sessionId: session, terminalId: id })
            : "version 1 has no terminals of the agent",
        "queue.withdraw": "the protocol has no queue",
        "queue.clear": "the protocol has no queue",
      },
      ...(version === 2 ? { spares: SPARED_BY_VERSION_2 } : {}),
      network: line,
      restart,
      close: async () => {
        await editor.drop();
        await close();
      },
    };
  };

const SPARED_BY_VERSION_2 = {
  "session.cancel": {
    "a process": "the protocol lets the background go on",
    "a process that is being started": "the protocol lets the background go on",
  },
  "run.cancel": { "an unanswered prompt": "`$/cancel_request` withdraws a prompt that is held, not one that runs" },
} as const;

export const acp1: OpenWay = acp(1);
export const acp2: OpenWay = acp(2);

export const commandLine: OpenWay = async (server) => {
  const { place, line } = await onPlatform(server);
  const { url } = place.served;
  const cancel = (id: string | undefined) => runCancel(id ?? "", { url, json: true });
  let program: { readonly over: Promise<number>; interrupt(): void } | undefined;
  /** In the terminal of `belay run`, once that has sent its prompt. */
  const ctrlC = async () => {
    await line.promptSent;
    program?.interrupt();
    return program?.over;
  };
  return {
    newSession: async () => (await server.belay.createSession()).id,
    promptsOnce: true,
    untilAnswered: "a command sends its stop until it is answered",
    prompt: ({ session, key, inFlight }, text) => {
      program = startProgram(text, { url, key, ...(hasOwnSession(inFlight) ? {} : { session }) });
      return Promise.race([program.over, line.promptAnswered]);
    },
    spares: OF_ANOTHER_PROGRAM,
    stops: {
      "belay.cancel": ({ id }) => cancel(id),
      "belay.cancelPrompt": ctrlC,
      "belay.cancelAll": () => runStopAll({ url, yes: true, json: true }),
      "session.cancel": ({ session }) => cancel(session),
      "session.cancelCall": ({ session, id = "" }) => runCancel(id, { url, session, json: true }),
      "session.cancelPrompt": "no command takes the key of a prompt",
      "session.close": "sessions are deleted",
      "session.delete": ({ session }) => runDelete(session, { url, yes: true }),
      "run.cancel": ({ runId }) => (runId === undefined ? ctrlC() : cancel(runId)),
      "process.cancel": ({ id }) => cancel(id),
      "queue.withdraw": ({ session, id = "" }) => runQueue(session, undefined, { url, withdraw: id }),
      "queue.clear": ({ session }) => runQueue(session, undefined, { url, clear: true }),
    },
    network: platformNetwork(url, line),
    restart: () => place.restart(),
    close: async () => {
      await place.served.close();
      lines.delete(new URL(url).host);
      FaultySocket.forget(url);
    },
  };
};

/** `belay run`, and the handler that it alone has for Ctrl-C. */
function startProgram(text: string, flags: Pick<RunFlags, "url" | "key" | "session">) {
  const before = new Set(process.listeners("SIGINT"));
  const over = startRun(text, { ...flags, patience: "60000", json: true });
  const own = process.listeners("SIGINT").filter((listener) => !before.has(listener));
  return { over, interrupt: () => own.forEach((listener) => void listener("SIGINT")) };
}

const NO_ANSWER_YET = "the prompt of another program, which has no answer yet";

const OF_ANOTHER_PROGRAM = {
  "belay.cancel": { "an unanswered prompt": NO_ANSWER_YET },
  "belay.cancelAll": {
    "an unanswered prompt": NO_ANSWER_YET,
    "an unanswered prompt in a session of its own": NO_ANSWER_YET,
  },
  "session.cancel": { "an unanswered prompt": NO_ANSWER_YET },
  "session.delete": { "an unanswered prompt": NO_ANSWER_YET },
} as const;
