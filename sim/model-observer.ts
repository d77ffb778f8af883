// Watches the real agent loop: what it asks of its model, when, how often, and what it tells of it.
import type { Outcome } from "../src/core/model/cancel.ts";
import type { Usage } from "../src/core/model/event.ts";
import type { Facts, Settled, WorkFacts } from "./facts.ts";
import type { Life } from "./life.ts";
import type { LiveStops } from "./live-stops.ts";
import { FIRST_BYTE_MS, type ModelOptions, RETRY_FIRST_MS, RETRY_LAST_MS, SILENT_MS } from "./model-agents.ts";
import { type ToldCall, toldCalls, wordsOfUsers, wrongWith } from "./model-prompt.ts";
import { ModelTurn, withoutRemark } from "./model-turn.ts";
import type { ParkedRequest } from "./parked-request.ts";
import { ROUNDING_MS } from "./time-observer.ts";

interface Parts {
  readonly facts: Facts;
  readonly stops: LiveStops;
  readonly options: ModelOptions | undefined;
  readonly life: () => Life;
  readonly elapsed: () => number;
  readonly note: (line: string) => void;
  readonly violate: (rule: string, message: string) => void;
}

export class ModelObserver {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** A request is about to be made. The turn's earlier ones are in its list. */
  asked(turn: ModelTurn, request: ParkedRequest): void {
    this.#parts.note(`  * ${turn.id} asks the model, ${request.purpose}, ${request.options.prompt.length} messages`);
    this.#mayAsk(turn);
    this.#mayAskAgain(turn, request);
    this.#checkBudget(turn);
    for (const wrong of wrongWith(request.options.prompt)) {
      this.#violate("G17", `${turn.id} has made a request that no provider takes: ${wrong}.`);
    }
    if (request.purpose === "turn") this.#checkTold(turn, request);
  }

  /** The loop does not wait for it any more: it was stopped, or its time is up. */
  release(turn: ModelTurn, request: ParkedRequest): void {
    this.#parts.note(`  * ${turn.id} lets go of the model`);
    if (turn.aborted || request.end !== undefined) return;
    const limitMs = request.begun ? SILENT_MS : FIRST_BYTE_MS;
    if (this.#parts.elapsed() - request.heardAt < limitMs - ROUNDING_MS) {
      this.#violate("G34", `${turn.id} has given its model up before its time.`);
    }
  }

  /** Everything that could happen by itself has happened. */
  drained(): void {
    for (const turn of this.#parts.life().actors.turns) {
      if (!(turn instanceof ModelTurn)) continue;
      if (turn.end === undefined && turn.aborted) this.#violate("G13", `${turn.id} goes on after its stop.`);
      const { request } = turn;
      if (request === undefined) continue;
      const limitMs = request.begun ? SILENT_MS : FIRST_BYTE_MS;
      if (turn.end !== undefined) this.#violate("G13", `${turn.id} has ended, and its request goes on.`);
      else if (this.#parts.elapsed() - request.heardAt > limitMs + ROUNDING_MS) {
        this.#violate("G12", `${turn.id} has waited too long for its model.`);
      }
    }
  }

  /** What is left of requests at rest: an answer that was complete, and a door that nobody has closed yet. */
  get lingering(): number {
    return this.#requests().filter(({ lingers, aborted }) => lingers && !aborted).length;
  }

  /** Streams that came after their turn had left must have been closed. */
  atRest(): void {
    for (const request of this.#requests()) {
      if (request.aborted && request.phase === "streaming" && !request.cancelled) {
        this.#violate("G13", "An answer came after the turn had left, and nobody closed the connection.");
      }
    }
  }

  /** What is recorded of a turn is what it has said, cost, and failed of. */
  checkTurn(turn: ModelTurn, work: WorkFacts, { outcome, usage, text }: Settled): void {
    const said = text === undefined ? undefined : withoutRemark(text);
    if (said !== undefined && !turn.text.startsWith(said)) {
      this.#violate("G17", `${turn.id} said "${turn.text}"; the log has "${text}".`);
    }
    if (outcome.kind === "completed" && said !== turn.text) {
      this.#violate("G17", `${turn.id} said "${turn.text}", and completed with "${text}".`);
    }
    if (outcome.kind === "lost" || (outcome.kind === "cancelled" && outcome.reason.kind === "shutdown")) {
      if (work.meter !== undefined && usage === undefined) {
        this.#violate("G18", `What ${turn.id} was known to have cost was forgotten.`);
      }
      return;
    }
    this.#checkUsage(turn, usage);
    this.#checkCode(turn, outcome);
  }

  #requests(): readonly ParkedRequest[] {
    return this.#parts.life().actors.turns.flatMap((turn) => (turn instanceof ModelTurn ? turn.requests : []));
  }

  #mayAsk(turn: ModelTurn): void {
    const { facts, stops } = this.#parts;
    const run = facts.runs.get(turn.runId);
    if (turn.aborted) this.#violate("G11", `${turn.id} asks its model, and was told to stop.`);
    else if (run?.cancel !== undefined && this.#isKnown(turn))
      this.#violate("G11", `${turn.id} asks its model after its cancel was recorded.`);
    else if (stops.stopped.has(turn.runId)) {
      this.#violate("G11", `${turn.id} asks its model after its stop was decided.`);
    }
    if (facts.works.get(turn.id)?.settled !== undefined && !this.#parts.life().release) {
      this.#violate("G16", `${turn.id} asks its model after its end was recorded.`);
    }
  }

  /** An interrupt stops a turn once it is known to be durable: before that, it could still have been refused. */
  #isKnown({ turn, runId }: ModelTurn): boolean {
    const run = this.#parts.facts.runs.get(runId);
    const live = this.#parts.life().engine.lanes.peek(turn.sessionId)?.durable.live;
    return run?.cancel?.reason.kind !== "superseded" || live?.phase === "stopping";
  }

  #mayAskAgain(turn: ModelTurn, { purpose, askedAt }: ParkedRequest): void {
    if (turn.request !== undefined) this.#violate("G4", `${turn.id} has two requests at once.`);
    const before = turn.of(purpose);
    const last = before.at(-1);
    const { options } = this.#parts;
    if (last === undefined || options === undefined) return;
    if (before.length >= options.attemptsMax) {
      this.#violate("G33", `${turn.id} asks its model for the ${before.length + 1}th time.`);
    }
    if (last.said) this.#violate("G17", `${turn.id} asks again what was answered in part.`);
    if (last.trouble?.retryable === false) this.#violate("G33", `${turn.id} asks again what was refused for good.`);
    const pauseMs = Math.min(RETRY_LAST_MS, last.trouble?.afterMs ?? RETRY_FIRST_MS * 2 ** (before.length - 1));
    if (askedAt - (last.endedAt ?? 0) < pauseMs - ROUNDING_MS)
      this.#violate("G34", `${turn.id} has not paused before it asks again.`);
  }

  #checkBudget({ id, turn }: ModelTurn): void {
    const { options } = this.#parts;
    const { turns, inputTokens, outputTokens } = turn.spent;
    if (options === undefined) return;
    if (turns >= options.turnsMax) this.#violate("G33", `${id} asks its model, and its run has no turns left.`);
    if (options.tokensMax !== undefined && inputTokens + outputTokens >= options.tokensMax) {
      this.#violate("G33", `${id} asks its model, and its run has no tokens left.`);
    }
  }

  /** The model hears what it was asked, and how each of its calls has ended. */
  #checkTold(turn: ModelTurn, { options: { prompt } }: ParkedRequest): void {
    const { facts, life } = this.#parts;
    if (facts.trims.has(turn.turn.sessionId) || life().release) return;
    const run = facts.runs.get(turn.runId);
    if (run !== undefined && !run.id.includes(".w") && !wordsOfUsers(prompt).includes(run.text)) {
      this.#violate("G17", `${turn.id} asks its model without what "${run.text}" has asked.`);
    }
    const told = toldCalls(prompt);
    const compacted = facts.log(turn.turn.sessionId).some(({ type }) => type === "session.compacted");
    for (const work of facts.works.values()) {
      if (work.runId !== turn.runId || work.name === "turn" || work.settled === undefined || !isNumbered(work))
        continue;
      const result = told.find((one) => one.name === work.name && sameInput(one.input, work.input));
      if (result === undefined) {
        if (!compacted) this.#violate("G17", `${turn.id} asks its model without the result of ${work.id}.`);
      } else if (!fits(result.how, work.settled.outcome)) {
        this.#violate(
          "G17",
          `${turn.id} tells its model that ${work.id} is ${result.how}; the log has something else.`,
        );
      }
    }
  }

  /** A request that was turned away costs nothing; any other one does, however it ended. */
  #checkUsage(turn: ModelTurn, usage: Usage | undefined): void {
    // One that was turned away in the very tick of a stop: nobody has looked at how it ended.
    const last = turn.requests.at(-1);
    if (last?.end === "refused" && turn.aborted) return;
    const counted = turn.requests.filter(({ end }) => end !== "refused");
    if (counted.length === 0) {
      if (usage !== undefined) this.#violate("G18", `${turn.id} has asked nobody, and has cost something.`);
      return;
    }
    if (usage === undefined) {
      this.#violate("G18", `${turn.id} has asked its model, and has cost nothing.`);
      return;
    }
    const told = counted.flatMap((request) => request.told ?? []);
    const input = told.reduce((sum, one) => sum + one.inputTokens, 0);
    const output = told.reduce((sum, one) => sum + one.outputTokens, 0);
    const guessed = counted.filter((request) => request.told === undefined);
    const most = guessed.reduce((sum, one) => sum + Math.ceil((one.chars + remarkOf(one)) / CHARS_PER_TOKEN), output);
    // The figures of a stream that was cut off in the very tick of its finish may not have been read.
    const unread = counted.some((request) => request.told !== undefined && request.aborted);
    const right = usage.estimated
      ? (guessed.length > 0 && usage.inputTokens > input && between(usage.outputTokens, output, most)) || unread
      : guessed.length === 0 && usage.inputTokens === input && usage.outputTokens === output;
    if (!right) this.#violate("G18", `${turn.id} is recorded with ${JSON.stringify(usage)}; it has told ${input}.`);
  }

  #checkCode(turn: ModelTurn, outcome: Outcome): void {
    const last = turn.requests.at(-1);
    if (outcome.kind !== "failed" || last?.purpose !== "turn" || last.end === "finished") return;
    const code = codeOf(last);
    if (outcome.code !== code) this.#violate("G15", `${turn.id} failed as ${outcome.code}; it was ${code}.`);
  }

  #violate(rule: string, message: string): void {
    this.#parts.violate(rule, message);
  }
}

/** What the loop itself may have added to an answer that was cut off at its length. */
const remarkOf = ({ reason }: ParkedRequest): number => (reason === "length" ? 40 : 0);

/** What a token is, roughly. */
const CHARS_PER_TOKEN = 4;

const between = (value: number, least: number, most: number): boolean => value >= least && value <= most;

/** Those that the model has asked for in a way that can be told from the others. */
const isNumbered = ({ input }: WorkFacts): boolean => typeof input === "object" && input !== null && "number" in input;

const sameInput = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

const HOW: Readonly<Record<Outcome["kind"], readonly ToldCall["how"][]>> = {
  completed: ["done"],
  failed: ["failed", "denied"],
  cancelled: ["stopped"],
  lost: ["lost"],
};

function fits(how: ToldCall["how"], outcome: Outcome): boolean {
  if (outcome.kind === "failed") return how === (outcome.code === "denied" ? "denied" : "failed");
  return HOW[outcome.kind].includes(how);
}

/** What the run must say has gone wrong, by what the provider has done. */
function codeOf({ end, trouble, said }: ParkedRequest): string {
  if (end === undefined) return "model_timeout";
  if (end === "closed") return "model_error";
  if (trouble?.retryable === true) return said ? "model_error" : "model_overloaded";
  return trouble?.status === 400 ? "model_rejected" : "model_error";
}
