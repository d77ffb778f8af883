// Clients that prompt, steer, cancel, edit the queue, answer and follow, over real sockets, through any number of
// deaths of their server; and the history of their requests and answers.
//
// Invariants
// 1. Every choice comes from the chooser; only how fast things go is the machine's.
// 2. Every request that was sent ends up in the history, once.
import { type Chooser, chance, pick, weighted } from "../../sim/chooser.ts";
import type { BelayClient } from "../../src/client/belay-client.ts";
import type { Recorded } from "../../src/core/model/event.ts";
import type { SessionId } from "../../src/core/model/ids.ts";
import type { Delivery, Prompt } from "../../src/core/model/prompt.ts";
import type { Message } from "../../src/core/read/transcript.ts";
import type { RunControl, SessionControl } from "../../src/ports/control.ts";
import type {
  Answer,
  CallerHistory,
  CallerRequest,
  RequestName,
  RequestOf,
  RequestTypes,
} from "../oracle/caller-history.ts";
import { Outlook } from "./outlook.ts";
import { answerOf, changeOf, replyTo } from "./requests.ts";
import { type Script, toData } from "./script.ts";
import { POISON, someTurns } from "./script-plan.ts";

/** `patient` waits for a restart, `hasty` asks again itself, `bare` sends no keys and so asks once. */
export interface Clients {
  readonly patient: BelayClient;
  readonly hasty: BelayClient;
  readonly bare: BelayClient;
}

interface Sent {
  readonly sessionId: SessionId;
  readonly script: Script;
  readonly delivery: Delivery;
  readonly key: string;
}

const DELIVERIES = [
  [6, "queue"],
  [2, "steer"],
  [2, "interrupt"],
  [1, "reject"],
] as const satisfies readonly (readonly [number, Delivery])[];

/** Before a follower that was given up asks again. */
const FOLLOW_AGAIN_MS = 50;

export class LoadClients {
  readonly #chooser: Chooser;
  readonly #name: string;
  readonly #requests: CallerRequest[] = [];
  readonly #slices: { sessionId: SessionId; after: number; received: Recorded[] }[] = [];
  readonly #outlooks = new Map<SessionId, Outlook>();
  readonly #pending = new Set<Promise<unknown>>();
  readonly #over = new AbortController();
  /** Prompts of which nobody knows whether they were accepted: sent again, with the same key, in the next life. */
  #unsure: Sent[] = [];
  #clients: Clients | undefined;
  #labels = 0;
  #moment = 0;

  constructor(chooser: Chooser, name: string) {
    this.#chooser = chooser;
    this.#name = name;
  }

  get sessions(): readonly SessionId[] {
    return [...this.#outlooks.keys()];
  }

  get history(): CallerHistory {
    return { requests: this.#requests, slices: this.#slices };
  }

  get joined(): boolean {
    return this.#clients !== undefined;
  }

  join(clients: Clients): void {
    this.#clients = clients;
  }

  /** Follows a session from its beginning, and may aim at what it hears of. */
  watch(sessionId: SessionId): void {
    if (this.#outlooks.has(sessionId)) return;
    this.#outlooks.set(sessionId, new Outlook());
    void this.#follow(sessionId, 0, this.#over.signal);
  }

  /** Something, to some session. Resolves when it has been told, or will be told later. */
  act(): Promise<unknown> {
    const sessionId = pick(this.#chooser, this.sessions);
    const outlook = this.#outlooks.get(sessionId) ?? new Outlook();
    const unsure = this.#unsure.shift();
    if (unsure !== undefined) return this.#send(unsure, this.#on.patient);
    return weighted<() => Promise<unknown>>(this.#chooser, [
      [9, () => this.#prompt(sessionId)],
      [2, () => this.#promptAndStop(sessionId)],
      [2, () => this.#promptTwice(sessionId)],
      [2, () => this.#cancelRun(sessionId, outlook)],
      [1, () => this.#cancelSession(sessionId)],
      [2, () => this.#cancelCall(sessionId, outlook)],
      [2, () => this.#cancelProcess(sessionId, outlook)],
      [3, () => this.#changeQueue(sessionId, outlook)],
      [3, () => this.#answer(sessionId, outlook)],
      [1, () => this.#lookIn(sessionId)],
    ])();
  }

  /** A prompt whose tool kills the server, in a session of its own, where it begins at once. */
  poison(sessionId: SessionId): Promise<unknown> {
    return this.#send(this.#made(sessionId, "queue", POISON), this.#on.hasty, "once");
  }

  /** Lets what waits for an answer go on, ends what goes on in the background, and says whether all is at rest. */
  async settle(): Promise<boolean> {
    const { patient } = this.#on;
    let rests = true;
    for (const sessionId of await this.allSessions()) {
      const { busy, processes, live } = await patient.session(sessionId).explain();
      rests &&= !busy && processes.length === 0;
      for (const { id } of live?.questions ?? []) {
        await this.#record("answer", sessionId, replyTo(id, "allowed"), () => patient.questions.allow(id));
      }
      for (const { id: processId } of busy ? [] : processes) {
        await this.#record("cancel-process", sessionId, { processId }, async () => {
          return (await patient.cancel(processId)) as RequestTypes["cancel-process"]["value"];
        });
      }
    }
    return rests;
  }

  /** Sentences about what is not at rest. */
  async busy(): Promise<readonly string[]> {
    const found = await Promise.all((await this.allSessions()).map((id) => this.#on.patient.session(id).explain()));
    return found.flatMap(({ sessionId, busy, summary }) => (busy ? [`${sessionId}: ${summary}`] : []));
  }

  /** Whether those who follow from the beginning have heard everything. */
  async heardAll(): Promise<boolean> {
    for (const sessionId of this.sessions) {
      const { head } = await this.#on.patient.session(sessionId).row();
      const heard = this.#slices.find((one) => one.sessionId === sessionId && one.after === 0)?.received.length ?? 0;
      if (heard < head) return false;
    }
    return true;
  }

  async allSessions(): Promise<readonly SessionId[]> {
    return (await this.#on.patient.sessions({ limit: 100 })).map(({ id }) => id);
  }

  transcript(sessionId: SessionId): Promise<readonly Message[]> {
    return this.#on.patient.session(sessionId).transcript();
  }

  /** Sends again all of which nobody knows. */
  async makeSure(): Promise<void> {
    for (const sent of this.#unsure.splice(0)) await this.#send(sent, this.#on.patient);
  }

  /** Resolves when everybody has been told. */
  async told(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /** Everybody lets go, and is told so where they waited. Who follows goes on with whoever joins next. */
  async part(): Promise<void> {
    for (const client of Object.values(this.#clients ?? {})) await client.close();
    await this.told();
    this.#clients = undefined;
  }

  /** For good. */
  async leave(): Promise<void> {
    this.#over.abort();
    await this.part();
  }

  /** Asks how everything ended that was ever accepted. */
  async askOutcomes(): Promise<void> {
    const known = this.#requests.flatMap((one) => {
      return one.name === "prompt" && one.answer.kind === "returned" ? [{ ...one, runId: one.answer.value.runId }] : [];
    });
    const ask = async ({ sessionId, runId }: (typeof known)[number]): Promise<unknown> =>
      this.#record("outcome", sessionId, { runId }, async () => (await this.#on.patient.run(runId)).outcome);
    for (const one of known) await ask(one);
  }

  get #on(): Clients {
    if (this.#clients === undefined) throw new Error("nobody has joined yet");
    return this.#clients;
  }

  #made(sessionId: SessionId, delivery: Delivery, turns: Script["turns"]): Sent {
    this.#labels += 1;
    const label = `${this.#name}.${this.#labels}`;
    return { sessionId, delivery, script: { label, turns }, key: `key-${label}` };
  }

  #some(sessionId: SessionId): Sent {
    return this.#made(sessionId, weighted<Delivery>(this.#chooser, DELIVERIES), someTurns(this.#chooser));
  }

  async #prompt(sessionId: SessionId): Promise<unknown> {
    const { patient, hasty, bare } = this.#on;
    return this.#send(this.#some(sessionId), pick(this.#chooser, [patient, hasty, hasty, bare]));
  }

  /** One sending of a prompt. `once`: it is not sent again if nobody knows what became of it. */
  async #send(sent: Sent, by: BelayClient, again?: "once"): Promise<unknown> {
    return this.#noteRun(sent, by, this.#submit(sent, by), again);
  }

  #submit({ sessionId, delivery, script, key }: Sent, by: BelayClient): RunControl {
    return by.session(sessionId).prompt(promptOf(script), { delivery, key });
  }

  async #noteRun(sent: Sent, by: BelayClient, run: RunControl, again?: "once"): Promise<unknown> {
    const { sessionId, script } = sent;
    const keyed = by !== this.#on.bare;
    const answer = await this.#record("prompt", sessionId, { label: script.label }, () => run.accepted);
    if (answer.kind === "returned") {
      const { runId } = answer.value;
      const waits = this.#on.patient.run(runId).then((one) => one.outcome);
      void this.#record("outcome", sessionId, { runId }, () => waits);
    } else if (answer.kind === "unknown" && keyed && again !== "once") this.#unsure.push(sent);
    return answer;
  }

  /** A prompt and its stop in one tick: by its handle, by its key, or with its session. */
  async #promptAndStop(sessionId: SessionId): Promise<unknown> {
    const { patient, hasty } = this.#on;
    const by = pick(this.#chooser, [patient, hasty]);
    const sent = this.#some(sessionId);
    const { label } = sent.script;
    const session = by.session(sessionId);
    const run = this.#submit(sent, by);
    const stop = pick(this.#chooser, ["handle", "key", "session"] as const);
    const stopping =
      stop === "session"
        ? this.#record("cancel-session", sessionId, {}, () => session.cancel())
        : this.#record("cancel-prompt", sessionId, { label, early: true }, () =>
            stop === "handle" ? run.cancel() : session.cancelPrompt(sent.key),
          );
    return Promise.all([this.#noteRun(sent, by, run), stopping]);
  }

  /** The same prompt under the same key from two clients at once. */
  async #promptTwice(sessionId: SessionId): Promise<unknown> {
    const sent = this.#some(sessionId);
    return Promise.all([this.#send(sent, this.#on.patient), this.#send(sent, this.#on.hasty)]);
  }

  async #cancelRun(sessionId: SessionId, { waiting, live, settled }: Outlook): Promise<unknown> {
    const runId = this.#oneOf([...live, ...waiting, ...settled.slice(-1)]);
    if (runId === undefined) return undefined;
    const by = this.#anybody();
    const wait = chance(this.#chooser, 30) ? { waitMs: 400 } : {};
    return this.#record("cancel-run", sessionId, { runId }, async () => {
      // The edge: a cancel of a run is answered like one.
      const receipt = await by.cancel(runId, { reason: "enough", ...wait });
      return receipt as RequestTypes["cancel-run"]["value"];
    });
  }

  async #cancelSession(sessionId: SessionId): Promise<unknown> {
    const background = pick(this.#chooser, ["keep", "stop"] as const);
    const by = this.#anybody();
    return this.#record("cancel-session", sessionId, {}, () => by.session(sessionId).cancel({ background }));
  }

  async #cancelCall(sessionId: SessionId, { calls }: Outlook): Promise<unknown> {
    const callId = this.#oneOf([...calls]);
    if (callId === undefined) return undefined;
    const by = this.#anybody();
    return this.#record("cancel-call", sessionId, { callId }, async () => {
      return (await by.cancel(callId)) as RequestTypes["cancel-call"]["value"];
    });
  }

  async #cancelProcess(sessionId: SessionId, { processes }: Outlook): Promise<unknown> {
    const processId = this.#oneOf([...processes]);
    if (processId === undefined) return undefined;
    const by = this.#anybody();
    return this.#record("cancel-process", sessionId, { processId }, async () => {
      return (await by.cancel(processId)) as RequestTypes["cancel-process"]["value"];
    });
  }

  async #changeQueue(sessionId: SessionId, { waiting }: Outlook): Promise<unknown> {
    const runId = this.#oneOf([...waiting]);
    if (runId === undefined) return this.#prompt(sessionId);
    const { queue } = this.#anybody().session(sessionId);
    const other = this.#oneOf([...waiting].filter((one) => one !== runId));
    switch (pick(this.#chooser, ["edit", "move", "withdraw", "steer"] as const)) {
      case "edit": {
        const { script } = this.#made(sessionId, "queue", someTurns(this.#chooser));
        const text = `edited: ${script.label}`;
        const prompt = { ...promptOf(script), text };
        const event = { type: "run.edited", like: { runId, prompt: { text } }, unique: true } as const;
        return this.#record("change", sessionId, { runId, event }, () => queue.edit(runId, prompt));
      }
      case "move": {
        const to = pick(this.#chooser, ["front", "back", other === undefined ? "back" : { before: other }] as const);
        return this.#record("change", sessionId, changeOf(runId, "run.moved"), () => queue.move(runId, to));
      }
      case "withdraw":
        return this.#record("change", sessionId, changeOf(runId, "run.settled"), () => queue.withdraw(runId));
      case "steer":
        return this.#record("change", sessionId, changeOf(runId, "run.steered"), () => queue.steer(runId));
    }
  }

  async #answer(sessionId: SessionId, { questions }: Outlook): Promise<unknown> {
    const questionId = this.#oneOf([...questions]);
    if (questionId === undefined) return this.#prompt(sessionId);
    const reply = pick(this.#chooser, ["allowed", "allowed", "denied"] as const);
    const { questions: desk } = this.#anybody();
    return this.#record("answer", sessionId, replyTo(questionId, reply), () =>
      reply === "allowed" ? desk.allow(questionId) : desk.deny(questionId),
    );
  }

  /** Follows for a while from somewhere, and leaves. */
  async #lookIn(sessionId: SessionId): Promise<void> {
    const heard = this.#slices.find((one) => one.sessionId === sessionId)?.received.length ?? 0;
    const signal = AbortSignal.any([this.#over.signal, AbortSignal.timeout(200)]);
    await this.#keep(this.#follow(sessionId, this.#chooser.below(heard + 1), signal));
  }

  async #follow(sessionId: SessionId, after: number, signal: AbortSignal): Promise<void> {
    const slice = { sessionId, after, received: [] as Recorded[] };
    this.#slices.push(slice);
    const outlook = after === 0 ? this.#outlooks.get(sessionId) : undefined;
    while (!signal.aborted) {
      try {
        const session: SessionControl = this.#on.patient.session(sessionId);
        for await (const event of session.events({ after: after + slice.received.length, signal })) {
          // A piece of text is not kept by anybody; a gap would be seen as a hole.
          if (!("seq" in event)) continue;
          slice.received.push(event);
          outlook?.hear(event);
        }
      } catch {
        // The server has been away for too long. It will be back, and then this goes on where it was.
        await new Promise((resolve) => setTimeout(resolve, FOLLOW_AGAIN_MS));
      }
    }
  }

  #anybody(): BelayClient {
    const { patient, hasty, bare } = this.#on;
    return pick(this.#chooser, [patient, patient, hasty, bare]);
  }

  #oneOf<T>(from: readonly T[]): T | undefined {
    return from.length === 0 ? undefined : pick(this.#chooser, from);
  }

  async #record<K extends RequestName>(
    name: K,
    sessionId: SessionId,
    params: RequestTypes[K]["params"],
    send: () => Promise<RequestTypes[K]["value"]>,
  ): Promise<Answer<RequestTypes[K]["value"]>> {
    const sentAt = this.#tick();
    const answer = await this.#keep(answerOf(send));
    const request: RequestOf<K> = { name, sessionId, params, sentAt, answeredAt: this.#tick(), answer };
    // The edge: the compiler does not see that a request of any name is one of them.
    this.#requests.push(request as unknown as CallerRequest);
    return answer;
  }

  #keep<T>(promise: Promise<T>): Promise<T> {
    this.#pending.add(promise);
    return promise.finally(() => this.#pending.delete(promise));
  }

  #tick(): number {
    this.#moment += 1;
    return this.#moment;
  }
}

const promptOf = (script: Script): Prompt => ({ text: script.label, data: toData(script) });
