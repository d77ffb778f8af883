// Belay over a network: code written against the library runs against a server by changing one line.
//
// Invariants
// 1. The client decides nothing: it reports what the server has responded, or that the server could not be reached.
// 2. `close()` ends the client's own waits and streams. It stops nothing at the server.

import { ControlError } from "../core/errors.ts";
import { CALL_WAIT_MS } from "../core/limits.ts";
import type { CancelReceipt, SessionReceipt } from "../core/model/cancel.ts";
import { isCallId, isProcessId, isQuestionId, isRunId, runOf, type SessionId } from "../core/model/ids.ts";
import type { Prompt } from "../core/model/prompt.ts";
import type { IdsFound, RunRow } from "../core/model/rows.ts";
import type { CallView } from "../core/read/call-view.ts";
import type { Clock } from "../ports/clock.ts";
import type {
  AllEventsOptions,
  AllSessionsEvent,
  AwaitedOutcome,
  BeginOptions,
  BelayControl,
  CancelAllOptions,
  CancelOptions,
  CoveredSession,
  CreateOptions,
  IdsOptions,
  PromptCancelOptions,
  SessionCancelOptions,
  SessionsPage,
  TenantScope,
} from "../ports/control.ts";
import type { Explanation, Status } from "../ports/explanation.ts";
import type { SessionRow } from "../ports/store.ts";
import { allEvents } from "./follow.ts";
import {
  checkKey,
  checkPrompt,
  checkRun,
  checkSession,
  collectionOf,
  ignoreUnhandled,
  ignoreUnhandledOf,
  invalid,
  optionsOf,
  rejectTenant,
  rejectUnknown,
} from "./input.ts";
import { PATIENCE_MS } from "./limits.ts";
import { openRun } from "./open-run.ts";
import { ClientAnswers } from "./questions.ts";
import { type Random, webRandom } from "./random.ts";
import { ClientRun } from "./run.ts";
import type { AcceptedIn } from "./send-order.ts";
import { ClientSession } from "./session.ts";
import { cancelPrompt, type KeyReceipt, stopOne } from "./stop.ts";
import { stopAll } from "./stop-all.ts";
import { type CarrierParts, eventsCarrier, firstOf, socketCarrier } from "./transport/carriers.ts";
import { Connection } from "./transport/connection.ts";
import type { Fetch } from "./transport/reply.ts";
import type { OpenCarrier } from "./transport/shared-stream.ts";
import { sharedByTabs } from "./transport/tabs.ts";
import { webClock } from "./web-clock.ts";

export interface ConnectOptions {
  /** The server's address, such as `http://127.0.0.1:4680`. Optional with a `socket`. */
  readonly url?: string;
  /**
   * The path of the server's private Unix socket. Node only. It needs no token: file permissions decide who may
   * connect.
   */
  readonly socket?: string;
  readonly token?: string;
  /**
   * How long the server may be unreachable before requests reject, in ms. Default 60000; `Infinity` waits without
   * limit.
   */
  readonly patienceMs?: number;
  /** The same while the server refuses connections, so that no server is running. Default: `patienceMs`. */
  readonly absentMs?: number;
  /** Aborts connecting. It has no effect once connected. */
  readonly signal?: AbortSignal;
  /** Replaces the platform's `fetch`. */
  readonly fetch?: Fetch;
  /**
   * How the client follows, waits and stops. `shared`: over one connection; in a browser, or with your own `fetch`,
   * all other requests use at most four connections, so that a stop never waits for one. `separate`: one request
   * each. Default `shared`; with a `socket`, or outside a browser with your own `fetch`, `separate`.
   */
  readonly streams?: "shared" | "separate";
  /** For tests: a controlled clock and source of randomness. */
  readonly clock?: Clock;
  readonly chance?: Random;
}

/** Connects to a server and checks the token. */
export async function connectBelay(options: ConnectOptions): Promise<BelayClient> {
  const { patienceMs = PATIENCE_MS, clock = webClock, chance = webRandom, token } = checkOptions(options);
  const address = await addressOf(options);
  const { fetch, socket } = options;
  const isBrowser = (globalThis as { location?: object }).location !== undefined;
  const { streams = socket === undefined && (fetch === undefined || isBrowser) ? "shared" : "separate" } = options;
  const open = streams === "shared" ? carriersOf({ ...address, token }, options) : undefined;
  const isCrowded = open !== undefined && (isBrowser || fetch !== undefined);
  const { absentMs = patienceMs } = options;
  const connection = new Connection({ ...address, open, isCrowded, token, clock, chance, patienceMs, absentMs });
  try {
    await connection.get("/v1/sessions", { limit: 1 }, options.signal);
  } catch (thrown) {
    // A token without read access is a valid token.
    if (!(thrown instanceof ControlError) || thrown.code !== "forbidden") throw unreachable(thrown);
  }
  return new BelayClient(connection);
}

export class BelayClient implements BelayControl {
  readonly questions: ClientAnswers;
  readonly #connection: Connection;

  static {
    ignoreUnhandledOf(BelayClient, ["cancel", "cancelPrompt"]);
  }

  constructor(connection: Connection) {
    this.#connection = connection;
    this.questions = new ClientAnswers(connection);
  }

  async createSession(options: CreateOptions = {}): Promise<ClientSession> {
    const { id, key: given, title, cwd, tenant, ...rest } = optionsOf(options, "createSession()");
    rejectUnknown(rest, "createSession()");
    rejectTenant(tenant);
    if (id !== undefined && given !== undefined) throw invalid("Give a session an `id` or a `key`, not both.");
    const body = { ...(id === undefined ? {} : { id: checkSession(id) }), ...made(title, cwd) };
    // The given id already makes this request idempotent.
    const key = id === undefined ? { key: this.#once(given) } : {};
    const row = await this.#connection.value<SessionRow>({ method: "POST", path: "/v1/sessions", body, ...key });
    return this.session(row.id);
  }

  prompt(prompt: string | Prompt, options: BeginOptions = {}): ClientRun {
    const { key: given, title, cwd, tenant, actor: _, ...rest } = optionsOf(options, "prompt()");
    rejectUnknown(rest, "prompt()");
    rejectTenant(tenant);
    const body = { prompt: checkPrompt(prompt), ...made(title, cwd) };
    const key = this.#once(given);
    const accepted = this.#connection.order.prompt({ key }, () =>
      this.#connection.value<AcceptedIn>({ method: "POST", path: "/v1/runs", body, key }),
    );
    return new ClientRun(this.#connection, { sessionId: undefined, accepted, prompt: { key } });
  }

  session(id: string): ClientSession {
    return new ClientSession(this.#connection, checkSession(id));
  }

  async sessions(page: SessionsPage = {}): Promise<readonly SessionRow[]> {
    const { order, after, before, limit, tenant, ...rest } = optionsOf(page, "sessions()");
    rejectUnknown(rest, "sessions()");
    rejectTenant(tenant);
    for (const cursor of [after, before]) if (cursor !== undefined) checkSession(cursor);
    const query = { order, after, before, limit };
    return (await this.#connection.get<{ sessions: readonly SessionRow[] }>("/v1/sessions", query)).sessions;
  }

  async ids(prefix: string, options: IdsOptions = {}): Promise<IdsFound> {
    const { limit, tenant, ...rest } = optionsOf(options, "ids()");
    rejectUnknown(rest, "ids()");
    rejectTenant(tenant);
    if (typeof prefix !== "string") throw invalid("A prefix must be a string.");
    return this.#connection.get<IdsFound>("/v1/ids", { prefix, limit });
  }

  async run(id: string): Promise<ClientRun> {
    return openRun(this.#connection, await this.#connection.get<RunRow>(`/v1/runs/${checkRun(id)}`));
  }

  async call(id: string): Promise<CallView> {
    if (typeof id !== "string" || !isCallId(id)) throw invalid('A call id begins with "call_".');
    return this.#connection.get<CallView>(`/v1/calls/${id}`);
  }

  async cancel(
    target: string,
    options: CancelOptions = {},
  ): Promise<SessionReceipt | (CancelReceipt & AwaitedOutcome)> {
    const collection = collectionOf(target);
    if (collection === undefined) return { kind: "unknown" };
    if (collection === "sessions") return this.session(target).cancel(options satisfies SessionCancelOptions);
    const { reason, waitMs, remind, key, ...rest } = optionsOf(options, "cancel()");
    rejectUnknown(rest, "cancel()");
    if (remind !== undefined && collection !== "calls") throw invalid("`remind` is for the cancel of one call.");
    if (waitMs !== undefined && collection === "questions") {
      throw invalid("A question ends at once: there is nothing to wait for.");
    }
    const path = `/v1/${collection}/${target}/cancel`;
    const limit = collection === "calls" || collection === "processes" ? (waitMs ?? CALL_WAIT_MS) : waitMs;
    const request = { path, body: { reason, remind }, key: this.#once(key), waitMs: limit };
    return stopOne(this.#connection, undefined, request);
  }

  async cancelPrompt(key: string, options: PromptCancelOptions & TenantScope = {}): Promise<KeyReceipt> {
    const { reason, key: once, early, tenant, actor: _, ...rest } = optionsOf(options, "cancelPrompt()");
    rejectUnknown(rest, "cancelPrompt()");
    rejectTenant(tenant);
    const named = checkKey(key);
    if (named === undefined) throw invalid("cancelPrompt() takes the key of a prompt.");
    return cancelPrompt(this.#connection, { key: named }, { reason, key: once, early });
  }

  cancelAll(options: CancelAllOptions = {}): Promise<readonly CoveredSession[]> {
    return ignoreUnhandled(this.#cancelAll(options));
  }

  async live(options: TenantScope = {}): Promise<readonly Explanation[]> {
    rejectTenant(optionsOf(options, "live()").tenant);
    return (await this.#connection.get<{ sessions: readonly Explanation[] }>("/v1/live")).sessions;
  }

  async findSession(id: string): Promise<SessionId | undefined> {
    try {
      if (isProcessId(id)) {
        return (await this.#connection.get<{ sessionId: SessionId }>(`/v1/processes/${id}`)).sessionId;
      }
      const run = isCallId(id) || isQuestionId(id) ? runOf(id) : id;
      return isRunId(run) ? (await this.#connection.get<RunRow>(`/v1/runs/${run}`)).session : undefined;
    } catch (thrown) {
      if (thrown instanceof ControlError && thrown.code === "not_found") return undefined;
      throw thrown;
    }
  }

  async *events(options: AllEventsOptions = {}): AsyncGenerator<AllSessionsEvent, void> {
    const { after, signal, tenant, ...rest } = optionsOf(options, "events()");
    rejectUnknown(rest, "events()");
    rejectTenant(tenant);
    yield* allEvents(this.#connection, { ...(after === undefined ? {} : { after }), ...(signal && { signal }) });
  }

  status(): Promise<Status> {
    return this.#connection.get("/v1/status");
  }

  /**
   * Disconnects: streams end, and pending promises reject with `disconnected`. Running work at the server continues.
   */
  async close(): Promise<void> {
    this.#connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #cancelAll(options: CancelAllOptions): Promise<readonly CoveredSession[]> {
    const { tenant, actor: _, ...request } = optionsOf(options, "cancelAll()");
    rejectTenant(tenant);
    return stopAll(this.#connection, request);
  }

  #once(key: string | undefined): string {
    return checkKey(key) ?? this.#connection.chance.key();
  }
}

function checkOptions(options: ConnectOptions): ConnectOptions {
  if (typeof options !== "object" || options === null) throw invalid("connectBelay() takes { url, token }.");
  const { url, socket, token, patienceMs, absentMs, signal, streams, ...others } = options;
  const { fetch: _, clock: _clock, chance: _chance, ...rest } = others;
  rejectUnknown(rest, "connectBelay()");
  if (url === undefined && socket === undefined) throw invalid("connectBelay() takes a `url`, or in Node a `socket`.");
  if (token !== undefined && (typeof token !== "string" || !/^[!-~]+$/.test(token))) {
    throw invalid("A `token` is a string without spaces.", "Look for a line end that was read with it.");
  }
  if (streams !== undefined && streams !== "shared" && streams !== "separate") {
    throw invalid('`streams` must be "shared" or "separate".');
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalid("`signal` must be an AbortSignal.");
  for (const [name, ms] of Object.entries({ patienceMs, absentMs })) {
    if (ms !== undefined && !(typeof ms === "number" && ms >= 0)) {
      throw invalid(`\`${name}\` must be a number of milliseconds, or Infinity.`);
    }
  }
  return options;
}

/** A private socket and a caller's own `fetch` are not used by WebSockets, so there is no WebSocket for them. */
function carriersOf(parts: CarrierParts, { fetch, socket }: ConnectOptions): OpenCarrier {
  const direct = fetch === undefined && socket === undefined;
  return firstOf(direct ? socketCarrier(parts) : undefined, sharedByTabs(parts, eventsCarrier(parts)));
}

/** The `fetch`, the base URL and the display name of the server. */
async function addressOf({ url, socket, fetch }: ConnectOptions) {
  if (socket !== undefined) {
    const { socketFetch } = await import("./transport/node-transport.ts");
    return { fetch: fetch ?? socketFetch(socket), base: "http://localhost", where: `Belay at ${socket}` };
  }
  const { origin, pathname, protocol, username, search } = parsed(url ?? "");
  if ((protocol !== "http:" && protocol !== "https:") || username !== "" || search !== "") {
    throw invalid("A `url` begins with http:// or https:// and has no user, password or query.");
  }
  const base = origin + pathname.replace(/\/+$/, "");
  // Called without a receiver: browsers reject `fetch` called as a method of another object.
  const platform: Fetch = (to, init) => globalThis.fetch(to, init);
  return { fetch: fetch ?? platform, base, where: `Belay at ${base}` };
}

function parsed(url: string): URL {
  try {
    return new URL(url);
  } catch (cause) {
    throw new ControlError("invalid", `${JSON.stringify(url)} is not the address of a server.`, { cause });
  }
}

/** Options of a new session. The server checks whether it allows the directory. */
const made = (
  title: string | undefined,
  cwd: string | undefined,
): { readonly title?: string; readonly cwd?: string } => ({
  ...(title === undefined ? {} : { title }),
  ...(cwd === undefined ? {} : { cwd }),
});

/** A first connection that fails is `unavailable`, not `disconnected`. */
function unreachable(thrown: unknown): unknown {
  if (!(thrown instanceof ControlError) || thrown.code !== "disconnected") return thrown;
  return new ControlError("unavailable", thrown.message, {
    cause: thrown,
    hint: "Check the address, and that the server is running: `belay serve` starts one.",
  });
}
