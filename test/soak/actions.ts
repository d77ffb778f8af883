// What is done to the server while it is soaked: every kind of prompt, stop, question, process and follower, in
// sessions that are made for it and closed behind it.

import { ControlError } from "../../src/core/errors.ts";
import type { Outcome } from "../../src/core/model/cancel.ts";
import type { ProcessControl, RunControl, SessionControl } from "../../src/ports/control.ts";
import type { Chance } from "./chance.ts";
import type { Connections } from "./connections.ts";
import type { SoakServer } from "./server.ts";

export interface ActionContext {
  readonly server: SoakServer;
  readonly doors: Connections;
  readonly chance: Chance;
  readonly tally: Tally;
}

/** What was done. `refused`: with a code, as it may be while a fault is on. */
export interface Tally {
  runs: number;
  cancels: number;
  processes: number;
  sessions: number;
  faults: number;
  refused: number;
  /** Deeds that went otherwise than they must, fault or no fault. */
  readonly wrong: string[];
}

export interface ActionState extends ActionContext {
  readonly session: SessionControl;
}

export type Action = (scene: ActionState) => Promise<void>;

/** Marks what a fault may kill from outside. */
export const VICTIM = "soak-victim";

/** Longer than any deed takes: whoever is waited for so long does not come. */
const SETTLE_MS = 20_000;

export function prompt({ session, tally }: ActionState, text: string, options = {}): RunControl {
  tally.runs += 1;
  const run = session.prompt(text, options);
  // Looked at by whoever made it, or by nobody.
  run.accepted.catch(() => {});
  run.outcome.catch(() => {});
  return run;
}

export async function ends(scene: ActionState, run: RunControl, ...kinds: readonly Outcome["kind"][]): Promise<void> {
  const outcome = await run.outcome;
  if (kinds.includes(outcome.kind)) return;
  scene.tally.wrong.push(`${run.id} should be ${kinds.join(" or ")}, and is ${JSON.stringify(outcome)}`);
}

/** Waits for an event that was recorded after a run was accepted. */
export async function event(
  scene: ActionState,
  type: string,
  from: RunControl,
): Promise<Readonly<Record<string, unknown>>> {
  await from.accepted;
  let accepted = false;
  for await (const one of scene.session.events({ deltas: "without" })) {
    accepted ||= "runId" in one && one.runId === from.id;
    if (accepted && one.type === type) return { ...one };
    // On a full disk a process is not started, and its call says so: what is waited for does not come.
    if (one.type === "run.settled" && one.runId === from.id) {
      throw new ControlError("not_started", `${from.id} has ended without ${type}.`);
    }
  }
  throw new ControlError("unavailable", `The events ended before ${type}.`);
}

async function cancel(scene: ActionState, run: RunControl): Promise<void> {
  scene.tally.cancels += 1;
  await run.cancel({ reason: "soak", waitMs: SETTLE_MS });
}

const talk: Action = async (scene) => ends(scene, prompt(scene, `say ${scene.chance.below(60)}`), "completed");

const turns: Action = async (scene) => {
  const run = prompt(scene, `turns ${1 + scene.chance.below(4)}`);
  await ends(scene, run, "completed");
  await scene.session.transcript();
  await run.text();
};

const failing: Action = async (scene) => ends(scene, prompt(scene, "fail on purpose"), "failed");

const sameKey: Action = async (scene) => {
  const key = `key-${scene.chance.below(1e9)}`;
  const [one, two] = [prompt(scene, "say 3", { key }), prompt(scene, "say 3", { key })];
  await Promise.all([one.accepted, two.accepted]);
  if (one.id !== two.id) scene.tally.wrong.push("one key has made two runs");
  await ends(scene, one, "completed");
};

/** A queue that is edited, moved, shortened and in the end stopped as a whole. */
const queue: Action = async (scene) => {
  const { session, tally } = scene;
  const live = prompt(scene, "wait");
  const queued = [1, 2, 3, 4].map((one) => prompt(scene, `say ${one}`));
  await Promise.all([live, ...queued].map((run) => run.accepted));
  const [first, second, third] = queued.map(({ id }) => id);
  await session.queue.edit(first ?? "", "say 7");
  await session.queue.move(second ?? "", "front");
  await session.queue.withdraw(third ?? "");
  await session.queue.list();
  tally.cancels += 1;
  await session.cancel({ waitMs: SETTLE_MS });
  await Promise.all([live, ...queued].map((run) => ends(scene, run, "cancelled")));
};

const steering: Action = async (scene) => {
  const live = prompt(scene, "attend");
  await event(scene, "turn.requested", live);
  const steer = prompt(scene, "a word", { delivery: "steer" });
  await Promise.all([ends(scene, live, "completed"), ends(scene, steer, "completed")]);
};

const interrupting: Action = async (scene) => {
  const live = prompt(scene, "wait");
  await event(scene, "turn.requested", live);
  const next = prompt(scene, "say 2", { delivery: "interrupt" });
  await Promise.all([ends(scene, live, "cancelled"), ends(scene, next, "completed")]);
};

const rejecting: Action = async (scene) => {
  const live = prompt(scene, "wait");
  await live.accepted;
  await prompt(scene, "say 1", { delivery: "reject" }).accepted.catch(() => {});
  await cancel(scene, live);
  await ends(scene, live, "cancelled");
};

const stopRun: Action = async (scene) => {
  const run = prompt(scene, scene.chance.pick(["wait", "deaf"]));
  if (scene.chance.below(2) === 0) await event(scene, "turn.requested", run);
  await cancel(scene, run);
  await ends(scene, run, "cancelled");
};

const stopCall: Action = async (scene) => {
  const run = prompt(scene, "call");
  const { callId } = await event(scene, "call.requested", run);
  scene.tally.cancels += 1;
  await scene.doors.tcp.cancel(String(callId), { waitMs: SETTLE_MS });
  await ends(scene, run, "completed");
};

const listening: Action = async (scene) => ends(scene, prompt(scene, "listen"), "completed");

const approval: Action = async (scene) => {
  const run = prompt(scene, "approve this");
  const { questionId } = await event(scene, "question.asked", run);
  const { questions } = scene.doors.tcp;
  const how = scene.chance.below(3);
  if (how === 0) await questions.allow(String(questionId));
  else if (how === 1) await questions.deny(String(questionId), { note: "no" });
  else await cancel(scene, run);
  await ends(scene, run, how === 2 ? "cancelled" : "completed");
};

const question: Action = async (scene) => {
  const run = prompt(scene, "ask");
  const { questionId } = await event(scene, "question.asked", run);
  await scene.doors.tcp.questions.answer(String(questionId), "this");
  await ends(scene, run, "completed");
};

const shortProcess: Action = async (scene) => {
  scene.tally.processes += 1;
  const run = prompt(scene, "run echo one; echo two >&2; (sleep 0.05; echo three) & wait");
  await ends(scene, run, "completed");
  const [row] = await scene.session.processes.history({ limit: 1 });
  if (row !== undefined) await (await scene.session.processes.get(row.id)).read();
};

const flood: Action = async (scene) => {
  scene.tally.processes += 1;
  await ends(scene, prompt(scene, "run head -c 12000000 /dev/zero | tr '\\0' x"), "completed");
};

/** One that would go on for ever; stopped by its id, by its run, or by somebody from outside. */
const longProcess: Action = async (scene) => {
  scene.tally.processes += 1;
  const run = prompt(scene, `run : ${VICTIM}; while :; do sleep 0.2; done`);
  const child = await startedBy(scene, run);
  const follower = drain(child);
  scene.tally.cancels += 1;
  if (scene.chance.below(2) === 0) await child.cancel();
  else await run.cancel({ waitMs: SETTLE_MS });
  await Promise.all([ends(scene, run, "completed", "cancelled"), follower]);
};

const deafProcess: Action = async (scene) => {
  scene.tally.processes += 1;
  const run = prompt(scene, `run trap '' TERM; : ${VICTIM}; (trap '' TERM; while :; do sleep 0.1; done) & wait`);
  await startedBy(scene, run);
  await cancel(scene, run);
  await ends(scene, run, "completed", "cancelled");
};

const background: Action = async (scene) => {
  scene.tally.processes += 2;
  // Failed: on a full disk no process is started.
  await ends(scene, prompt(scene, "background sleep 0.05; echo ready"), "completed", "failed");
  await ends(scene, prompt(scene, `background : ${VICTIM}; while :; do sleep 0.2; done`), "completed", "failed");
  scene.tally.cancels += 1;
  await scene.session.cancel({ waitMs: SETTLE_MS });
};

async function startedBy(scene: ActionState, run: RunControl): Promise<ProcessControl> {
  const { processId } = await event(scene, "process.started", run);
  return scene.session.processes.get(String(processId));
}

async function drain(child: ProcessControl): Promise<void> {
  for await (const page of child.follow()) void page;
}

const stopAll: Action = async (scene) => {
  const run = prompt(scene, "wait");
  await run.accepted;
  scene.tally.cancels += 1;
  // Only its own: the others at this time are about something else.
  await scene.doors.tcp.cancel(scene.session.id, { waitMs: SETTLE_MS });
  await scene.session.explain();
  await scene.doors.tcp.live();
  await ends(scene, run, "cancelled");
};

const trimming: Action = async (scene) => {
  await ends(scene, prompt(scene, "say 5"), "completed");
  await scene.session.post({ kind: "reminder", text: "something was stopped" });
  const { head } = await scene.session.row();
  await scene.session.trim(head);
  await ends(scene, prompt(scene, "say 5"), "completed");
};

export const DEEDS: Readonly<Record<string, Action>> = {
  ...{ talk, turns, failing, sameKey, queue, steering, interrupting, rejecting, stopRun, stopCall, listening },
  ...{ approval, question, shortProcess, flood, longProcess, deafProcess, background, stopAll, trimming },
};
