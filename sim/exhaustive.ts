// Every interleaving of a few operations on one session with the steps of the engine, one execution each: a walk over
// choice vectors, re-run from the beginning, cut off where it meets a state it has been in before.
import { callId, processId, questionId, type RunId, type SessionId } from "../src/core/model/ids.ts";
import type { TurnActor } from "./actors.ts";
import { type Chooser, ListedChooser } from "./chooser.ts";
import { onRejections } from "./rejections.ts";
import { comeToRest } from "./rest.ts";
import type { Parked } from "./sim-store.ts";
import { Simulation } from "./simulation.ts";
import { stateOf } from "./state.ts";
import type { Violation } from "./violation.ts";

export const OPERATIONS = [
  "accept",
  "cancel-session",
  "cancel-run",
  "complete",
  "fail",
  "steer",
  "edit",
  "crash",
] as const;
/** On a run whose first turn has ended with two calls: one waits for an approval, the other may be repeated. */
export const CALL_OPERATIONS = [
  "allow",
  "deny",
  "cancel-question",
  "cancel-call",
  "end-call",
  "cancel-run",
  "post",
  "steer",
  "crash",
] as const;
/** On a run whose first turn makes a call that has started a process in the background, and waits for it. */
export const WAIT_OPERATIONS = [
  "exit",
  "cancel-process",
  "take",
  "end-call",
  "fail-call",
  "cancel-call",
  "complete",
  "cancel-session",
  "crash",
] as const;
/** On an idle session in whose background two processes go on, whose results want a run. */
export const WAKE_OPERATIONS = [
  "exit",
  "cancel-process",
  "accept",
  "cancel-session",
  "cancel-and-keep",
  "complete",
  "close",
  "crash",
] as const;
/** Sets the scene, before anything is chosen. */
const SCENES = ["with calls", "with a process", "with processes"] as const;
export type Operation =
  | (typeof OPERATIONS)[number]
  | (typeof CALL_OPERATIONS)[number]
  | (typeof WAIT_OPERATIONS)[number]
  | (typeof WAKE_OPERATIONS)[number]
  | (typeof SCENES)[number];
export type Scope = readonly Operation[];

const WAKE = { feedback: "wake" } as const;

export interface ScopeResult {
  /** Executions: each one another choice vector. */
  readonly interleavings: number;
  readonly violations: readonly (Violation & { readonly choices: readonly number[] })[];
}

/** All multisets of one to `size` operations. */
export function scopesUpTo(size: number): readonly Scope[] {
  return multisets(OPERATIONS, size);
}

/** The same of what can happen to calls. */
export function callScopesUpTo(size: number): readonly Scope[] {
  return multisets(CALL_OPERATIONS, size).map((scope) => ["with calls", ...scope]);
}

/** The same of what can happen to processes. */
export function processScopesUpTo(size: number): readonly Scope[] {
  return [
    ...multisets(WAIT_OPERATIONS, size).map((scope): Scope => ["with a process", ...scope]),
    ...multisets(WAKE_OPERATIONS, size).map((scope): Scope => ["with processes", ...scope]),
  ];
}

function multisets(operations: readonly Operation[], size: number): readonly Scope[] {
  let last: Scope[] = [[]];
  const all: Scope[] = [];
  for (let count = 1; count <= size; count += 1) {
    last = last.flatMap((scope) => {
      const from = Math.max(0, operations.indexOf(scope.at(-1) ?? operations[0] ?? "accept"));
      return operations.slice(from).map((operation) => [...scope, operation]);
    });
    all.push(...last);
  }
  return all;
}

export async function exploreScope(scope: Scope): Promise<ScopeResult> {
  const seen = new Set<string>();
  const violations: (Violation & { readonly choices: readonly number[] })[] = [];
  let interleavings = 0;
  let next: readonly number[] | undefined = [];
  while (next !== undefined && violations.length === 0) {
    const chooser = new ListedChooser(next);
    const simulation = new Simulation(ONE_SESSION, chooser);
    violations.push(
      ...(await execute(simulation, scope, seen, next.length)).map((one) => ({ ...one, choices: chooser.made })),
    );
    interleavings += 1;
    next = vectorAfter(chooser);
  }
  return { interleavings, violations };
}

/** One execution, for reading. */
export async function replayScope(scope: Scope, choices: readonly number[]): Promise<readonly string[]> {
  const simulation = new Simulation(ONE_SESSION, new ListedChooser(choices), "lines");
  await execute(simulation, scope, new Set(), choices.length);
  return simulation.trace.lines ?? [];
}

const ONE_SESSION = {
  sessions: 1,
  slots: 1024,
  onCrash: "resume",
  stubbornPercent: 0,
  hooks: false,
  metered: false,
  runLimitMs: undefined,
  processes: true,
  model: undefined,
  pageMax: undefined,
} as const;

/** The next vector in order: the last choice that has another one is changed, and those after it are forgotten. */
function vectorAfter({ made, widths }: ListedChooser): readonly number[] | undefined {
  for (let index = made.length - 1; index >= 0; index -= 1) {
    const choice = made[index] ?? 0;
    if (choice + 1 < (widths[index] ?? 0)) return [...made.slice(0, index), choice + 1];
  }
  return undefined;
}

async function execute(
  simulation: Simulation,
  scope: Scope,
  seen: Set<string>,
  given: number,
): Promise<readonly Violation[]> {
  onRejections(simulation);
  await simulation.begin();
  const walk = new Walk(simulation, scope);
  await walk.setScene();
  for (;;) {
    await simulation.drain();
    if (simulation.violations.length > 0) break;
    const moves = walk.moves();
    if (moves.length === 0) break;
    if (walk.choices >= given && !isNew(seen, stateOf(simulation, walk.left))) return [];
    await walk.make(moves);
  }
  if (simulation.violations.length === 0) await comeToRest(simulation);
  simulation.life.end();
  return simulation.violations;
}

function isNew(seen: Set<string>, state: string): boolean {
  if (seen.has(state)) return false;
  seen.add(state);
  return true;
}

type Move =
  | { readonly do: "operation"; readonly operation: Operation }
  | { readonly do: "answer" | "apply"; readonly parked: Parked };

class Walk {
  readonly left: Operation[];
  readonly #simulation: Simulation;
  readonly #chooser: Chooser;
  readonly #session: SessionId;
  readonly #closes: boolean;
  #asked: RunId[] = [];

  constructor(simulation: Simulation, scope: Scope) {
    this.#simulation = simulation;
    this.#chooser = simulation.chooser;
    this.left = [...scope];
    this.#closes = scope.includes("close");
    this.#session = simulation.sessions[0] ?? "ses_";
  }

  async setScene(): Promise<void> {
    const scene = SCENES.find((one) => this.left.includes(one));
    if (scene === undefined) return;
    const { life } = this.#simulation;
    life.store.parks = false;
    if (scene === "with processes") for (const _ of [1, 2]) this.#simulation.clients.start(this.#session, WAKE);
    else await this.#operate("accept");
    await this.#simulation.drain();
    const [turn] = life.actors.turns;
    if (turn !== undefined && scene === "with calls") life.actors.endWithCalls(turn, [["approval"], ["idempotent"]]);
    if (turn !== undefined && scene === "with a process") await this.#callThatWaits(turn);
    await this.#simulation.drain();
    this.left.splice(this.left.indexOf(scene), 1);
    life.store.parks = true;
  }

  async #callThatWaits(turn: TurnActor): Promise<void> {
    const { actors } = this.#simulation.life;
    actors.call(turn, []);
    await this.#simulation.drain();
    const [call] = actors.calls;
    call?.processes.start(`of ${call.id}`, WAKE);
    await this.#simulation.drain();
    const [handle] = call?.processes.handles ?? [];
    if (handle !== undefined) call?.processes.wait(handle, undefined);
  }

  get choices(): number {
    return this.#chooser instanceof ListedChooser ? this.#chooser.made.length : 0;
  }

  moves(): readonly Move[] {
    const moves: Move[] = this.#operations().map((operation) => ({ do: "operation", operation }));
    for (const parked of this.#simulation.life.store.parked) {
      moves.push({ do: "answer", parked });
      if (parked.phase === "waiting") moves.push({ do: "apply", parked });
    }
    return moves;
  }

  async make(moves: readonly Move[]): Promise<void> {
    const move = moves[moves.length === 1 ? 0 : this.#chooser.below(moves.length)];
    if (move === undefined) return;
    if (move.do === "operation") await this.#inOneTick(move.operation);
    else if (move.do === "answer") this.#simulation.answer(move.parked);
    else this.#simulation.apply(move.parked);
  }

  /** An operation, and whatever else is chosen to happen in the same tick. */
  async #inOneTick(first: Operation): Promise<void> {
    await this.#operate(first);
    while (first !== "crash") {
      const more = this.#operations().filter((operation) => operation !== "crash");
      const choice = more.length === 0 ? 0 : this.#chooser.below(more.length + 1);
      const operation = more[choice - 1];
      if (operation === undefined) return;
      await this.#operate(operation);
    }
  }

  /** What can happen now, each kind once. */
  #operations(): readonly Operation[] {
    const { life } = this.#simulation;
    if (life.phase !== "open") return [];
    const turns = life.actors.turns.some((turn) => turn.end === undefined);
    return [...new Set(this.left)].filter((operation) => {
      if (operation === "complete" || operation === "fail") return turns;
      if (operation === "cancel-run" || operation === "edit") return this.#asked.length > 0;
      if (operation === "take") return turns;
      if (operation === "exit") return this.#simulation.world.going.length > 0;
      if (operation === "end-call" || operation === "fail-call") {
        return life.actors.calls.some((call) => call.end === undefined);
      }
      return true;
    });
  }

  async #operate(operation: Operation): Promise<void> {
    if (this.left.includes(operation)) this.left.splice(this.left.indexOf(operation), 1);
    const { clients, life } = this.#simulation;
    const turn = life.actors.turns.find((one) => one.end === undefined);
    switch (operation) {
      case "accept":
      case "steer": {
        const delivery = operation === "accept" ? "queue" : "steer";
        const { runId } = clients.prompt(this.#session, { text: `p${this.#asked.length}`, delivery, key: undefined });
        this.#asked.push(runId);
        // A prompt that is refused has no run to wait for.
        if (!this.#closes) clients.wait(this.#session, runId);
        return;
      }
      case "cancel-session":
        clients.cancelSession(this.#session);
        return;
      case "cancel-run":
        // The oldest: the one most likely to be over, and whose id must then hit nobody else.
        clients.cancelRun(this.#session, this.#asked[0] ?? "run_");
        return;
      case "edit":
        clients.change(this.#session, this.#asked.at(-1) ?? "run_", { verb: "edit" });
        return;
      case "complete":
        this.#simulation.trace.note("complete");
        turn?.complete("end");
        return;
      case "fail":
        this.#simulation.trace.note("fail");
        turn?.fail();
        return;
      case "crash":
        await this.#simulation.crash("released");
        return;
      case "exit":
      case "cancel-process":
      case "take":
      case "cancel-and-keep":
      case "close":
        this.#operateOnProcesses(operation);
        return;
      default:
        this.#operateOnCalls(operation);
    }
  }

  /** The oldest process; for what ends by itself, whichever goes on. */
  #operateOnProcesses(operation: Operation): void {
    const { clients, life, trace, world } = this.#simulation;
    switch (operation) {
      case "exit":
        trace.note("exit");
        world.going[0]?.exit(0);
        return;
      case "cancel-process":
        clients.cancelProcess(this.#session, processId(this.#session, 1));
        return;
      case "cancel-and-keep":
        clients.cancelSession(this.#session, { keep: true });
        return;
      case "close":
        clients.close(this.#session);
        return;
      default: {
        trace.note("take");
        const turn = life.actors.turns.find((one) => one.end === undefined);
        if (turn !== undefined) life.actors.takeSteers(turn);
      }
    }
  }

  /** The first call and its approval; for what ends by itself, whichever goes on. */
  #operateOnCalls(operation: Operation): void {
    const { clients, life, facts, trace } = this.#simulation;
    const run = this.#asked[0] ?? "run_";
    const question = questionId(run, 1);
    switch (operation) {
      case "allow":
        clients.answer(this.#session, question, { kind: "allowed" });
        return;
      case "deny":
        clients.answer(this.#session, question, { kind: "denied" });
        return;
      case "cancel-question":
        clients.cancelQuestion(this.#session, question);
        return;
      case "cancel-call":
        clients.cancelCall(this.#session, callId(run, facts.works.has(callId(run, 1)) ? 1 : 2), { remind: true });
        return;
      case "post":
        clients.post(this.#session);
        return;
      case "fail-call":
        trace.note("fail call");
        life.actors.calls.find((call) => call.end === undefined)?.fail();
        return;
      default:
        trace.note("end call");
        life.actors.calls.find((call) => call.end === undefined)?.complete();
    }
  }
}
