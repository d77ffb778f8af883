// The clients' part of a random schedule.
import { type CallId, questionId, type RunId, type SessionId } from "../src/core/model/ids.ts";
import type { QuestionReply } from "../src/core/model/question.ts";
import type { Actor } from "./actors.ts";
import { type Chooser, chance, pick, weighted } from "./chooser.ts";
import type { QuestionFacts } from "./facts.ts";
import type { RandomProcesses } from "./random-processes.ts";
import type { PromptRecord } from "./records.ts";
import type { ScheduleOptions } from "./schedule-options.ts";
import type { Simulation } from "./simulation.ts";

/** As many things as follow from each other at once, in a turn that begins or ends. */
const HOPS_MAX = 8;

export class RandomClients {
  readonly #simulation: Simulation;
  readonly #flavour: ScheduleOptions;
  readonly #chooser: Chooser;
  readonly #processes: RandomProcesses;
  #text = 0;

  constructor(simulation: Simulation, flavour: ScheduleOptions, processes: RandomProcesses) {
    this.#simulation = simulation;
    this.#flavour = flavour;
    this.#processes = processes;
    this.#chooser = simulation.chooser;
  }

  /** One or more requests in the same tick. */
  move(): void {
    const count = weighted(this.#chooser, [
      [6, 1],
      [3, 2],
      [1, 3],
    ] as const);
    const session = pick(this.#chooser, this.#simulation.sessions);
    for (let index = 0; index < count; index += 1) this.#client(session);
  }

  /** Somebody stops a run a moment later, in the same tick: between two things that follow from each other. */
  stopSoon(session: SessionId, runId: RunId): void {
    const { life, clients } = this.#simulation;
    let left = 1 + this.#chooser.below(HOPS_MAX);
    const hop = (): void => {
      left -= 1;
      if (left > 0) queueMicrotask(hop);
      else if (life.phase === "open") clients.cancelRun(session, runId);
    };
    queueMicrotask(hop);
  }

  /** Whoever hears that something begins stops it, or what began with it, at once. */
  reflex(actor: Actor): void {
    if (!chance(this.#chooser, 12)) return;
    const { facts, clients } = this.#simulation;
    const session = facts.runs.get(actor.runId)?.session;
    const calls = [...facts.works.values()].filter(
      (work) => work.runId === actor.runId && work.name !== "turn" && work.settled === undefined,
    );
    if (session === undefined) return;
    if (calls.length === 0 || chance(this.#chooser, 25)) clients.cancelRun(session, actor.runId);
    else {
      const callId = pick(this.#chooser, calls).id as CallId;
      clients.cancelCall(session, callId, { remind: chance(this.#chooser, 50) });
    }
  }

  #client(session: SessionId): void {
    const { clients } = this.#simulation;
    const { keys, queueChanges, closes, follows, trims, calls, ends, posts } = this.#flavour;
    const known = clients.prompts.filter((prompt) => prompt.session === session);
    const some = known.length > 0;
    const { deep } = this.#flavour;
    const kind = weighted(this.#chooser, [
      [deep && some ? 8 : 30, "prompt"],
      [deep ? 2 : 14, "cancel"],
      [some ? (deep ? 2 : 12) : 0, "cancel-run"],
      [some && keys ? 6 : 0, "cancel-key"],
      [calls || ends ? 8 : 0, "cancel-call"],
      [this.#answerable(session) ? (deep ? 40 : 24) : 0, "answer"],
      [this.#answerable(session) ? (deep ? 10 : 4) : 0, "cancel-question"],
      [posts ? 8 : 0, "post"],
      [some && queueChanges ? 18 : 0, "change"],
      [some ? 8 : 0, "wait"],
      [closes ? 2 : 0, "close"],
      [follows ? 8 : 0, "follow"],
      [trims && follows ? 4 : 0, "trim"],
      [this.#flavour.processes ? (this.#flavour.patient ? 8 : 20) : 0, "process"],
    ] as const);
    const run = (): RunId => this.#wakeRun(session) ?? pick(this.#chooser, known.slice(-4)).runId;
    if (kind === "prompt") this.#prompt(session);
    else if (kind === "cancel") clients.cancelSession(session, { keep: this.#processes.isKept() });
    else if (kind === "process") this.#processes.byClient(session);
    else if (kind === "cancel-run") clients.cancelRun(session, run());
    else if (kind === "cancel-key") clients.cancelKey(session, this.#key(), chance(this.#chooser, 50));
    else if (kind === "cancel-call") this.#cancelCall(session);
    else if (kind === "answer") this.#answer(session);
    else if (kind === "cancel-question") clients.cancelQuestion(session, this.#question(session).id);
    else if (kind === "post") clients.post(session);
    else if (kind === "change") this.#change(session, run());
    else if (kind === "wait") this.#wait(session, known);
    else if (kind === "close") clients.close(session);
    else if (kind === "follow") this.#follow(session);
    else this.#trim(session);
  }

  /** Now and then one that nobody has asked for. */
  #wakeRun(session: SessionId): RunId | undefined {
    const open = this.#simulation.facts.open(session).filter(({ id }) => id.includes(".w"));
    return open.length > 0 && chance(this.#chooser, 60) ? pick(this.#chooser, open).id : undefined;
  }

  #prompt(session: SessionId): void {
    const key = this.#flavour.keys && chance(this.#chooser, 60) ? this.#key() : undefined;
    // Under a key the same text comes again, and now and then another one.
    this.#text += 1;
    const text = key === undefined ? `p${this.#text}` : chance(this.#chooser, 85) ? `under ${key}` : `p${this.#text}`;
    const delivery = key === undefined ? pick(this.#chooser, this.#flavour.deliveries) : "queue";
    this.#simulation.clients.prompt(session, { text, delivery, key });
  }

  #cancelCall(session: SessionId): void {
    const { facts, clients } = this.#simulation;
    const calls = [...facts.works.values()].filter(
      (work) => work.id.startsWith("call_") && facts.runs.get(work.runId)?.session === session,
    );
    if (calls.length === 0) return;
    const callId = pick(this.#chooser, calls.slice(-3)).id as CallId;
    const remind = chance(this.#chooser, 60);
    const key = this.#flavour.keys && chance(this.#chooser, 40) ? { key: `stop ${callId} ${remind}` } : {};
    clients.cancelCall(session, callId, { remind, ...key });
  }

  #answerable(session: SessionId): boolean {
    const open = this.#simulation.facts.asked(session);
    return open.length > 0;
  }

  /** Mostly one that is open; now and then one that has ended, or was asked long ago. */
  #question(session: SessionId): QuestionFacts {
    const all = this.#simulation.facts.asked(session);
    const open = all.filter((question) => question.ending === undefined);
    return pick(this.#chooser, open.length > 0 && chance(this.#chooser, 75) ? open : all.slice(-3));
  }

  #answer(session: SessionId): void {
    const { clients, facts } = this.#simulation;
    const question = this.#question(session);
    // Somebody guesses the name of one that has not been asked yet.
    const { id } = chance(this.#chooser, 5) ? { id: questionId(question.runId, facts.questions.size + 1) } : question;
    const { about } = question;
    // Both answers in one tick, now and then: the first one counts.
    for (let count = chance(this.#chooser, 15) ? 2 : 1; count > 0; count -= 1) {
      const right = about.kind === "approval" ? about.digest : undefined;
      const digest = chance(this.#chooser, 25) ? (chance(this.#chooser, 50) ? right : "other bytes") : undefined;
      clients.answer(session, id, this.#reply(question), digest);
    }
  }

  #reply({ about }: QuestionFacts): QuestionReply {
    const misfit = chance(this.#chooser, 8);
    if ((about.kind === "approval") === misfit) {
      const value = pick(this.#chooser, [...(about.kind === "question" ? (about.options ?? []) : []), "something"]);
      return { kind: "answered", value };
    }
    return weighted<QuestionReply>(this.#chooser, [
      [6, { kind: "allowed" }],
      [2, { kind: "allowed", remember: "session" }],
      [4, { kind: "denied", note: "no" }],
    ]);
  }

  #change(session: SessionId, runId: RunId): void {
    const { clients } = this.#simulation;
    const verb = weighted(this.#chooser, [
      [3, "edit"],
      [2, "move"],
      [2, "withdraw"],
      [3, "steer"],
    ] as const);
    const others = clients.prompts.filter((prompt) => prompt.session === session && prompt.runId !== runId);
    const before = others.length > 0 && chance(this.#chooser, 40) ? pick(this.#chooser, others).runId : undefined;
    const to = before === undefined ? pick(this.#chooser, ["front", "back"] as const) : { before };
    clients.change(session, runId, { verb, to });
  }

  /** Whoever waits has been told that there is something to wait for; or asks for something that is long gone. */
  #wait(session: SessionId, known: readonly PromptRecord[]): void {
    const { clients, life } = this.#simulation;
    const told = known.filter((one) => (one.receipt ?? one.refused) !== undefined || one.life !== life.number);
    if (told.length > 0) clients.wait(session, pick(this.#chooser, told.slice(-4)).runId);
  }

  #follow(session: SessionId): void {
    const { clients, facts, life } = this.#simulation;
    const mine = clients.followers.filter((one) => one.life === life.number && !one.ended);
    const { gone } = clients;
    const move = weighted(this.#chooser, [
      [mine.length < this.#flavour.followersMax ? 4 : 0, "follow"],
      [gone.length > 0 ? 4 : 0, "come back"],
      [mine.length > 0 ? 2 : 0, "leave"],
    ] as const);
    if (move === "leave") clients.leave(pick(this.#chooser, mine));
    else if (move === "come back") clients.comeBack(pick(this.#chooser, gone));
    else {
      const deltas = chance(this.#chooser, 40) ? "with" : "without";
      clients.follow(session, this.#chooser.below(facts.head(session) + 1), deltas);
    }
  }

  /** Retention: what belongs to no run without an outcome, and what the engine has seen, may go. */
  #trim(session: SessionId): void {
    const { facts, disk, life, trace } = this.#simulation;
    const seen = life.engine.lanes.peek(session)?.durable.head ?? 0;
    const first = facts.open(session)[0]?.acceptedAt ?? facts.head(session);
    const to = Math.min(seen, first - 1);
    if (to <= (disk.trimmedTo.get(session) ?? 0)) return;
    disk.trimmedTo.set(session, to);
    facts.trims.set(session, [...(facts.trims.get(session) ?? []), to]);
    trace.note(`trim ${session} to ${to}`);
  }

  #key(): string {
    return pick(this.#chooser, ["k1", "k2"]);
  }
}
