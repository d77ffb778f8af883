// Who watches the agents: everything that begins, and everything an agent is told, is held against the logs at that
// very moment. It shares no rule with `decide`.
import type { Usage } from "../src/core/model/event.ts";
import type { CallId } from "../src/core/model/ids.ts";
import type { Message } from "../src/core/read/transcript.ts";
import type { CallResult, QuestionResult } from "../src/ports/agent.ts";
import type { Effect } from "../test/oracle/check-effects.ts";
import type { Actor, CallActor, TurnActor, Watch } from "./actors.ts";
import type { Facts, WorkFacts } from "./facts.ts";
import type { Life } from "./life.ts";
import type { LiveStops } from "./live-stops.ts";
import type { ModelWatch } from "./model-agents.ts";
import type { ModelObserver } from "./model-observer.ts";
import type { ModelTurn } from "./model-turn.ts";
import type { ParkedRequest } from "./parked-request.ts";
import { PLACES } from "./places.ts";
import { needsApproval, scopeOf } from "./plan.ts";
import type { ProcessWatch } from "./process-user.ts";
import { replaced } from "./scripted-hooks.ts";
import type { Trace } from "./trace.ts";
import { checkTranscript } from "./transcripts.ts";

interface Parts {
  readonly facts: Facts;
  readonly processes: ProcessWatch;
  readonly models: ModelObserver;
  readonly trace: Trace;
  readonly stops: LiveStops;
  readonly life: () => Life;
  readonly violate: (rule: string, message: string) => void;
  readonly stubborn: () => boolean;
  /** A stop that was received before and covers this piece of work. */
  readonly stoppedBefore: (actor: Actor) => string | undefined;
  /** Somebody acts in the very moment in which a piece of work begins. */
  readonly began: (actor: Actor) => void;
}

export class Witness implements Watch, ModelWatch {
  readonly #parts: Parts;
  readonly #facts: Facts;
  /** Steers that agents were given, by life: after a crash they are given again. */
  readonly #heard = new Set<string>();
  /** Turns and calls that have begun, in all lives. */
  readonly #begun: { readonly actor: Actor; readonly life: number | undefined }[] = [];
  /** How often each call of each run has really been carried out, in all lives. */
  readonly #carriedOut = new Map<string, CallActor[]>();
  /** Calls that were handed to their tool, in any life. */
  readonly carriedOut = new Set<CallId>();
  #calls = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#facts = parts.facts;
  }

  get processes(): ProcessWatch {
    return this.#parts.processes;
  }

  starved(actor: Actor): void {
    this.#violate("G12", `${actor.id} tries again after its stop, and the event loop does not turn.`);
  }

  stubborn(): boolean {
    return this.#parts.stubborn();
  }

  deaf(): boolean {
    return this.#parts.stubborn();
  }

  modelAsked(turn: ModelTurn, request: ParkedRequest): void {
    this.#parts.models.asked(turn, request);
  }

  modelLetGo(turn: ModelTurn, request: ParkedRequest): void {
    this.#parts.models.release(turn, request);
  }

  /** The work that was really carried out, in all lives, for the model in test/oracle. */
  get effects(): readonly Effect[] {
    return this.#begun.flatMap(({ actor, life }): Effect[] => {
      const begin: Effect = { kind: "begin", work: actor.id, ...(life === undefined ? {} : { life }) };
      return actor.end === "completed" ? [begin, { ...begin, kind: "end" }] : [begin];
    });
  }

  /** A worker that has lost its lease may be given the same work once more. */
  #noteBegin(actor: Actor): void {
    this.#begun.push({ actor, life: this.#life.release ? undefined : this.#life.number });
  }

  callNumber(): number {
    this.#calls += 1;
    return this.#calls;
  }

  known(actor: TurnActor): number {
    return this.#life.engine.lanes.peek(actor.turn.sessionId)?.durable.head ?? 0;
  }

  turnBegan(actor: TurnActor): void {
    const { turnId, runId, prompt } = actor.turn;
    this.#note(`  * ${turnId} begins`);
    const run = this.#facts.runs.get(runId);
    const turn = this.#facts.works.get(turnId);
    if (run === undefined || turn === undefined) {
      this.#violate("G11", `${turnId} began before its request was durable.`);
      return;
    }
    this.#mayBegin(actor, turn.settled !== undefined, run.cancel !== undefined);
    this.#noteBegin(actor);
    if (prompt.text !== run.text) this.#violate("G6", `${turnId} was given "${prompt.text}", not "${run.text}".`);
    const others = this.#life.actors.turns.filter(
      (one) => one.runId === runId && one.end === undefined && one !== actor,
    );
    if (others.some((one) => !one.aborted)) this.#violate("G4", `${turnId} began while another turn of it goes on.`);
    this.#checkBefore(actor);
    this.#parts.began(actor);
  }

  /** What came before a turn has ended, and was counted. */
  #checkBefore({ turn, runId }: TurnActor): void {
    let spent: Usage = { inputTokens: 0, outputTokens: 0, estimated: false };
    let turns = 0;
    for (const work of this.#facts.works.values()) {
      if (work.runId !== runId || work.id === turn.turnId) continue;
      if (work.settled === undefined) this.#violate("G17", `${turn.turnId} began before ${work.id} had ended.`);
      if (work.name !== "turn") continue;
      turns += 1;
      spent = sum(spent, work.settled?.usage);
    }
    if (JSON.stringify(turn.spent) !== JSON.stringify({ ...spent, turns })) {
      this.#violate("G18", `${turn.turnId} was told that its run has spent something else than the log says.`);
    }
  }

  callBegan(actor: CallActor): void {
    const { callId } = actor.live;
    this.#note(`  * ${callId} begins`);
    const call = this.#facts.works.get(callId);
    if (call === undefined) {
      this.#violate("G11", `${callId} began before its request was durable.`);
      return;
    }
    this.carriedOut.add(callId);
    this.#noteBegin(actor);
    const cancelled = call.cancel !== undefined || this.#facts.runs.get(call.runId)?.cancel !== undefined;
    this.#mayBegin(actor, call.settled !== undefined, cancelled);
    if (this.#parts.stops.stoppedCalls.has(callId)) {
      this.#violate("G11", `${callId} was carried out after its stop was decided.`);
    }
    if (actor.turn === undefined) this.#byEnd(actor);
    else this.#withinTurn(actor, actor.turn);
    this.#checkBytes(actor, call);
    this.#checkPlace(actor);
    this.#parts.began(actor);
  }

  /** A call that the end of a turn asked for. */
  #byEnd({ live, runId }: CallActor): void {
    for (const work of this.#facts.works.values()) {
      if (work.runId === runId && work.name === "turn" && work.settled === undefined) {
        this.#violate("G17", `${live.callId} was carried out while ${work.id} goes on.`);
      }
    }
  }

  #withinTurn(actor: CallActor, turn: TurnActor): void {
    const { callId } = actor.live;
    const newest = this.#life.actors.turns.findLast((one) => one.runId === actor.runId);
    if (newest !== turn) this.#violate("G17", `${callId} of ${turn.id} began in ${newest?.id}.`);
    const name = `${actor.runId} ${this.#facts.works.get(callId)?.place} ${String(actor.plan.input)}`;
    const before = this.#carriedOut.get(name) ?? [];
    const completed = (one: CallActor): boolean =>
      one.end !== undefined && this.#facts.works.get(one.id)?.settled?.outcome.kind === "completed";
    if (before.some(completed)) this.#violate("G25", `${callId} repeats a call of ${actor.runId} that had completed.`);
    this.#carriedOut.set(name, [...before, actor]);
  }

  /** Whether the same call, of this turn or of one asked again in its place, has completed. */
  #isDone({ runId, place, input }: WorkFacts): boolean {
    return [...this.#facts.works.values()].some(
      (one) =>
        one.runId === runId && one.place === place && one.input === input && one.settled?.outcome.kind === "completed",
    );
  }

  /** It is carried out as it was asked for, or as the host wants it; and people have approved these very bytes. */
  #checkBytes({ live, plan }: CallActor, call: WorkFacts): void {
    const { callId, input, name } = live;
    const said = this.#life.host.said.get(callId);
    const expected = said === "replace" ? replaced(call.input ?? null) : call.input;
    if (JSON.stringify(expected) !== JSON.stringify(input) || name !== call.name) {
      this.#violate("G9", `${callId} was carried out with other bytes than it was asked for.`);
    }
    if (said === "deny" || said === "throw") this.#violate("G11", `${callId} was carried out against the host's word.`);
    if (!needsApproval(plan) || said === "approve") return;
    const digest = JSON.stringify([name, input]);
    const asked = [...this.#facts.questions.values()].findLast(
      ({ owner, about }) => owner === callId && about.kind === "approval" && about.digest === digest,
    );
    if (asked?.ending?.kind === "allowed") {
      const shown = asked.about.kind === "approval" ? asked.about.input : undefined;
      if (JSON.stringify(shown) !== JSON.stringify(input)) {
        this.#violate("G9", `${callId} was carried out with other bytes than people were shown.`);
      }
      return;
    }
    const granted = this.#facts.grants.get(live.sessionId)?.has(scopeOf(plan)) === true;
    if (!granted) this.#violate("G9", `${callId} was carried out, and nobody had approved it.`);
  }

  #checkPlace({ id, plan }: CallActor): void {
    if (!plan.traits.includes("slot")) return;
    const { actors } = this.#life;
    if (!actors.places.holds(plan)) this.#violate("G33", `${id} was carried out without a place.`);
    const inside = actors.calls.filter(
      (one) =>
        one.plan.traits.includes("slot") &&
        one.end === undefined &&
        this.#facts.works.get(one.id)?.settled === undefined &&
        actors.places.holds(one.plan),
    );
    if (inside.length > PLACES) this.#violate("G33", `${inside.length} calls share ${PLACES} places.`);
  }

  callAnswered(actor: TurnActor, result: CallResult | undefined): void {
    this.#note(`  < ${actor.id} hears ${result === undefined ? "refused" : `${result.kind} ${result.callId}`}`);
    if (result === undefined) return;
    const { kind, callId } = result;
    const call = this.#facts.works.get(callId);
    if (call === undefined && kind === "cancelled") return; // It never came into being.
    if (this.#life.phase === "closing" || this.#life.release) return;
    if (call?.settled?.outcome.kind !== kind) {
      this.#violate("G16", `${actor.id} was told that ${callId} is ${kind} before that was durable.`);
      return;
    }
    if (call.place !== this.#facts.works.get(actor.id)?.place) {
      this.#violate("G25", `${actor.id} was told what became of ${callId}, which another turn had asked for.`);
    }
    if (kind === "lost" && this.#isDone(call)) {
      this.#violate("G25", `${actor.id} was told that ${callId} is lost, and the same call has completed since.`);
    }
    const told = kind === "completed" ? result.value : kind === "cancelled" ? result.partial : undefined;
    const expected = kind === "completed" || kind === "cancelled" ? call.settled.result : undefined;
    if (JSON.stringify(told) !== JSON.stringify(expected)) {
      this.#violate("G15", `${actor.id} was told another result of ${callId} than the log has.`);
    }
  }

  steerHeard(actor: TurnActor, text: string): void {
    this.#note(`  < ${actor.id} hears "${text}"`);
    for (const run of this.#facts.runs.values()) {
      if (run.text !== text || run.outcome?.kind !== "completed" || run.outcome.into !== actor.runId) continue;
      const name = `${this.#life.number} ${run.id}`;
      if (this.#heard.has(name) && !this.#life.release)
        this.#violate("G5", `${actor.id} was given ${run.id}, which had been given before.`);
      this.#heard.add(name);
      return;
    }
    this.#violate("G5", `${actor.id} was given "${text}", which was not taken into its run.`);
  }

  askAnswered(actor: Actor, text: string, asked: QuestionResult | undefined): void {
    this.#note(`  < ${actor.id} hears ${asked?.kind ?? "no answer"} to ${text}`);
    const question = [...this.#facts.questions.values()].find(
      ({ about }) => about.kind === "question" && about.text === text,
    );
    if (asked === undefined) {
      const trouble = this.#life.faults > 0 || this.#life.phase === "closing" || actor.end !== undefined;
      if (!trouble && !this.#isStopping(actor)) this.#violate("G13", `${actor.id} was never told about ${text}.`);
      return;
    }
    if (question?.owner !== actor.id) {
      this.#violate("G10", `${actor.id} was told about ${text}, which it has not asked.`);
    } else if (JSON.stringify(question.ending) !== JSON.stringify(asked)) {
      this.#violate("G16", `${actor.id} was told another answer to ${text} than the log has by now.`);
    }
  }

  transcriptRead(actor: TurnActor, messages: readonly Message[], from: number): void {
    this.#note(`  < ${actor.id} reads ${messages.length} messages`);
    // Whoever was let go of goes on with what it knew.
    if (this.#life.release) return;
    checkTranscript(
      { actor, messages, from, to: this.#facts.head(actor.turn.sessionId) },
      this.#facts,
      (rule, message) => this.#violate(rule, message),
    );
  }

  stopped(actor: TurnActor, note: string, phase: "asked" | "answered"): void {
    if (phase === "asked") {
      this.#parts.stops.stopsAtOnce(actor.turn.sessionId);
      return;
    }
    const run = this.#facts.runs.get(actor.runId);
    if (run?.cancel === undefined && run?.outcome === undefined) {
      this.#violate("G15", `${actor.id} has "${note}", but no cancel is recorded.`);
    }
  }

  /** Whether it has been asked to stop, or belongs to something that has. */
  #isStopping(actor: Actor): boolean {
    if (actor.aborted) return true;
    const run = this.#facts.runs.get(actor.runId);
    const lane = run === undefined ? undefined : this.#life.engine.lanes.peek(run.session);
    // Also one that is not told of it, because it cannot stop half-way.
    if (lane?.work(actor.id)?.scope.reason !== undefined) return true;
    const live = lane?.phase === "ready" ? lane.decided.live : undefined;
    if (live?.id !== actor.runId || live.phase !== "running") return true;
    return live.turn !== actor.id && live.live.find((call) => call.id === actor.id)?.phase !== "running";
  }

  #mayBegin(actor: TurnActor | CallActor, settled: boolean, cancelled: boolean): void {
    if (settled) this.#violate("G16", `${actor.id} began after its end was recorded.`);
    if (cancelled) this.#violate("G11", `${actor.id} began after its cancel was recorded.`);
    const stop = this.#parts.stoppedBefore(actor);
    if (stop !== undefined) this.#violate("G11", `${actor.id} began after ${stop} was received.`);
    // What was decided and then lost with the lane was told to nobody as done.
    if (this.#parts.stops.stopped.has(actor.runId) && !this.#life.release) {
      this.#violate("G11", `${actor.id} began after its stop was decided.`);
    }
  }

  get #life(): Life {
    return this.#parts.life();
  }

  #note(line: string): void {
    this.#parts.trace.note(line);
  }

  #violate(rule: string, message: string): void {
    this.#parts.violate(rule, message);
  }
}

const sum = (one: Usage, other: Usage | undefined): Usage =>
  other === undefined
    ? one
    : {
        inputTokens: one.inputTokens + other.inputTokens,
        outputTokens: one.outputTokens + other.outputTokens,
        estimated: one.estimated || other.estimated,
      };
