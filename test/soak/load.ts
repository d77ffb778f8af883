// The load: lanes that make a session, do some of everything in it and close it, with company and with faults.
import { setTimeout as pause } from "node:timers/promises";
import { ControlError } from "../../src/core/errors.ts";
import { type Action, type ActionContext, type ActionState, DEEDS } from "./actions.ts";
import type { Chance } from "./chance.ts";
import { deafFollower, editor, passingFollower, stayingFollower, stranger } from "./clients.ts";
import { within } from "./deadline.ts";
import { FAULTS } from "./nemesis.ts";

/** Nothing that is done takes longer, faults included; whoever waits longer waits for ever. */
const DEED_MS_MAX = 90_000;

/** Deeds in one session. */
const SESSION_DEEDS_MAX = 6;

/** How often a close is tried while a fault may be on. */
const CLOSE_TRIES_MAX = 20;
const CLOSE_PAUSE_MS = 200;

/** Names of what is to be done, in an order that the dice choose; each as often as the others. */
export function deedList(rounds: number, chance: Chance): string[] {
  const names = Array.from({ length: rounds }, () => Object.keys(DEEDS)).flat();
  for (let at = names.length - 1; at > 0; at -= 1) {
    const other = chance.below(at + 1);
    const [one, two] = [names[at], names[other]];
    if (one !== undefined && two !== undefined) [names[at], names[other]] = [two, one];
  }
  return names;
}

/** The name of what is done next; undefined: that was all. */
export type NextDeed = () => Promise<string | undefined>;

/** One lane: takes names until there are none, a handful for each session. */
export async function lane(stage: ActionContext, next: NextDeed): Promise<void> {
  for (let name = await next(); name !== undefined; ) {
    const session = await tried(stage, "a session to be made", () => open(stage));
    if (session === undefined) {
      await pause(CLOSE_PAUSE_MS);
      name = await next();
      continue;
    }
    const scene: ActionState = { ...stage, session };
    const leave = await tried(stage, "company", () => company(scene));
    for (let done = 1 + stage.chance.below(SESSION_DEEDS_MAX); done > 0 && name !== undefined; done -= 1) {
      const deed: Action | undefined = DEEDS[name];
      if (deed !== undefined) await tried(stage, name, () => deed(scene));
      name = await next();
    }
    await closed(scene);
    await leave?.();
  }
}

async function open({ doors, chance, tally }: ActionContext): Promise<ActionState["session"]> {
  tally.sessions += 1;
  return chance.pick([doors.tcp, doors.cuttable]).createSession({ title: "soak" });
}

/** Who else looks at a session; the answer is how they leave. */
async function company(scene: ActionState): Promise<() => Promise<void>> {
  // In turn, so that each kind has been there before the first rest.
  switch (scene.tally.sessions % 5) {
    case 0:
      return stayingFollower(scene);
    case 1: {
      const leave = await deafFollower(scene);
      return async () => leave();
    }
    case 2: {
      const passing = passingFollower(scene).catch(() => {});
      return () => passing;
    }
    case 3: {
      await editor(scene);
      return async () => {};
    }
    default: {
      const leave = await stranger(scene);
      return async () => leave();
    }
  }
}

/** What was refused with a code was refused; what did not end is told. */
async function tried<T>(stage: ActionContext, what: string, act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await within(DEED_MS_MAX, what, act());
  } catch (error) {
    if (error instanceof ControlError) stage.tally.refused += 1;
    else stage.tally.wrong.push(`${what}: ${String(error)}`);
    return undefined;
  }
}

async function closed(scene: ActionState): Promise<void> {
  for (let tries = 0; tries < CLOSE_TRIES_MAX; tries += 1) {
    const receipt = await tried(scene, "a session to close", () => scene.session.close());
    if (receipt !== undefined) return;
    await pause(CLOSE_PAUSE_MS);
  }
  scene.tally.wrong.push(`${scene.session.id} could not be closed`);
}

/** One fault after the other, in turn, until it is told to end. */
export async function nemesis(stage: ActionContext, everyMs: number, over: AbortSignal): Promise<void> {
  const names = Object.keys(FAULTS);
  for (let count = 0; !over.aborted; count += 1) {
    try {
      await pause(everyMs, undefined, { signal: over });
    } catch {
      return;
    }
    await fault(stage, names[count % names.length] ?? "");
  }
}

export async function fault(stage: ActionContext, name: string): Promise<void> {
  stage.tally.faults += 1;
  await FAULTS[name]?.(stage).catch((error: unknown) => {
    // A lock that was not to be had is no fault of the server's.
    if (!/locked|busy/.test(String(error))) stage.tally.wrong.push(`${name}: ${String(error)}`);
  });
}
