import { describe, expect, test } from "vitest";
import type { SessionId } from "../src/core/model/ids.ts";
import { SeededChooser } from "./chooser.ts";
import type { PromptRecord } from "./records.ts";
import type { Parked, TroubleKind, Verb } from "./sim-store.ts";
import { Simulation, type SimulationOptions } from "./simulation.ts";
import { StoreTrouble } from "./store-trouble.ts";

const OPTIONS: SimulationOptions = {
  sessions: 1,
  slots: 1,
  onCrash: "resume",
  stubbornPercent: 0,
  hooks: false,
  metered: false,
  runLimitMs: undefined,
  processes: false,
  model: undefined,
  pageMax: undefined,
};

/** A simulation whose store is in trouble from now on, for three steps. */
async function inTrouble(kind: TroubleKind) {
  const simulation = new Simulation(OPTIONS, new SeededChooser(1), "lines");
  await simulation.begin();
  const trouble = new StoreTrouble(simulation, { ...kind, afterSteps: 0, steps: 3 });
  trouble.step();
  return { simulation, trouble, session: simulation.sessions[0] as SessionId };
}

/** A prompt, and the append that waits in the store because of it. */
async function prompted(simulation: Simulation, session: SessionId): Promise<{ record: PromptRecord; append: Parked }> {
  const record = simulation.clients.prompt(session, { text: "hello", delivery: "queue", key: undefined });
  await simulation.drain();
  return { record, append: waiting(simulation, "append") };
}

function waiting({ life }: Simulation, verb: Verb): Parked {
  const found = life.store.parked.find((one) => one.verb === verb);
  if (found === undefined) throw new Error(`no ${verb} waits in the store`);
  return found;
}

describe("a store that refuses", () => {
  const refusing: TroubleKind = { kind: "refusing", code: "store_full" };

  test("rejects the append; the session has nothing of it", async () => {
    const { simulation, trouble, session } = await inTrouble(refusing);
    const head = simulation.facts.head(session);
    const { record, append } = await prompted(simulation, session);
    await trouble.take(append);
    expect([record.refused, simulation.facts.head(session)]).toEqual(["store_full", head]);
    expect(trouble.tally).toEqual({ refused: 1, silenced: 0, slowed: 0 });
  });

  test("answers reads, unless they are refused too", async () => {
    for (const [kind, refused] of [
      [refusing, 0],
      [{ ...refusing, also: "reads" }, 1],
    ] as const) {
      const { simulation, trouble, session } = await inTrouble(kind);
      simulation.life.store.load(session).catch(() => undefined);
      const taken = trouble.take(waiting(simulation, "load"));
      expect([taken === undefined, trouble.tally.refused]).toEqual([refused === 0, refused]);
      await taken;
    }
  });

  test("is well again after its steps", async () => {
    const { simulation, trouble, session } = await inTrouble(refusing);
    for (let step = 0; step < 3; step += 1) trouble.step();
    const { append } = await prompted(simulation, session);
    expect(trouble.take(append)).toBeUndefined();
  });

  test("G28: an append that is sent again and again without a pause is a violation", async () => {
    const { simulation, trouble, session } = await inTrouble(refusing);
    const resend = (): void => {
      simulation.life.store.append({ session, expected: 1, events: [], at: 0 }).catch(resend);
    };
    resend();
    await trouble.take(waiting(simulation, "append"));
    expect(simulation.violations).toMatchObject([{ rule: "G28", message: expect.stringContaining("without a pause") }]);
  });
});

test("G33: a session that sends again and again within a second to a store that refuses is a violation", async () => {
  const { simulation, trouble, session } = await inTrouble({ kind: "refusing", code: "store_full" });
  for (let sent = 1; sent <= 7; sent += 1) {
    expect(simulation.violations).toEqual([]);
    simulation.life.store.append({ session, expected: 1, events: [], at: 0 }).catch(() => undefined);
    await trouble.take(waiting(simulation, "append"));
    simulation.clock.tick(100);
  }
  expect(simulation.violations).toMatchObject([
    { rule: "G33", message: expect.stringContaining("7 times in a second") },
  ]);
});

test.each([
  [true, 1],
  [false, 0],
])("a silent store never answers, not even after it is well again (applied: %s)", async (applied, added) => {
  const { simulation, trouble, session } = await inTrouble({ kind: "silent", applied });
  const { record, append } = await prompted(simulation, session);
  const head = simulation.facts.head(session);
  await trouble.take(append);
  const later = simulation.life.store.load(session).then(() => "answered");
  trouble.end();
  await simulation.drain();
  expect(simulation.facts.log(session).filter(({ type }) => type === "run.accepted")).toHaveLength(added);
  expect(simulation.facts.head(session) > head).toBe(applied);
  expect([record.refused, record.receipt]).toEqual([undefined, undefined]);
  expect(await Promise.race([later, simulation.drain().then(() => "silent")])).toBe("silent");
  expect(trouble.tally.silenced).toBe(2);
});

test.each(["at-once", "at-end"] as const)("a slow store commits after its time (applied %s)", async (applied) => {
  const { simulation, trouble, session } = await inTrouble({ kind: "slow", commitMs: 300, applied });
  const { record, append } = await prompted(simulation, session);
  const head = simulation.facts.head(session);
  await trouble.take(append);
  simulation.clock.tick(299);
  await simulation.drain();
  expect([simulation.facts.head(session) > head, record.receipt]).toEqual([applied === "at-once", undefined]);
  simulation.clock.tick(1);
  await simulation.drain();
  expect([simulation.facts.head(session) > head, record.receipt?.runId]).toEqual([true, record.runId]);
  expect(trouble.tally.slowed).toBe(1);
});

test("a slow append of a life that has ended changes nothing", async () => {
  const { simulation, trouble, session } = await inTrouble({ kind: "slow", commitMs: 300, applied: "at-end" });
  const { append } = await prompted(simulation, session);
  const head = simulation.facts.head(session);
  await trouble.take(append);
  await simulation.crash("released");
  simulation.clock.tick(300);
  await simulation.drain();
  expect(simulation.facts.head(session)).toBe(head);
});

test("a call that was made before the trouble does not meet it", async () => {
  const options: TroubleKind = { kind: "refusing", code: "store_full", also: "reads" };
  const { simulation, session } = await inTrouble(options);
  const { append } = await prompted(simulation, session);
  const trouble = new StoreTrouble(simulation, { ...options, afterSteps: 0, steps: 3 });
  trouble.step();
  expect(trouble.take(append)).toBeUndefined();
});
