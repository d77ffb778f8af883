// How a process ended, for whoever has only the store to ask, and a log that does not go back to its end any more.
import { expect, test } from "vitest";
import { logOf } from "../../test/open-house.ts";
import { neighbour, type Stage, stage } from "../../test/process-stage.ts";
import type { ProcessId, Seq } from "../core/ids.ts";
import { SNAPSHOT_EVENTS } from "../core/limits.ts";
import type { Session } from "../library/session.ts";
import { Gate } from "../testing/gate.ts";
import { settled } from "../testing/manual-clock.ts";

/** So much more happens that a snapshot is made, and what was before it can be removed. */
async function goOn(session: Session): Promise<void> {
  const from = (await session.explain()).asOf;
  while ((await session.explain()).asOf < from + SNAPSHOT_EVENTS) await session.prompt("more").outcome;
}

async function ended({ spawner }: Stage, session: Session): Promise<ProcessId> {
  const handle = await session.processes.start("work", { feedback: "silent" });
  spawner.children.at(-1)?.exit();
  await handle.wait();
  return handle.id;
}

async function endOf(session: Session, id: ProcessId): Promise<Seq> {
  const end = (await logOf(session)).find((event) => event.type === "process.settled" && event.processId === id);
  return end?.seq ?? 0;
}

test("one whose end retention has removed has still ended as it did", async () => {
  const here = await stage();
  const session = await here.belay.createSession();
  const first = await ended(here, session);
  await goOn(session);
  const second = await ended(here, session);
  const kept = await endOf(session, second);
  await goOn(session);
  // What is left begins with the end of another one, which is not to be taken for its own.
  expect(await here.store.trim(session.id, kept)).toEqual({ kept });
  const result = await (await session.processes.get(first)).wait();
  expect(result).toEqual({ processId: first, outcome: { kind: "completed" } });
  expect(await (await session.processes.get(second)).wait()).toMatchObject({ processId: second, exit: { code: 0 } });
});

test("one whose end was removed before another worker could read it has ended as it did", async () => {
  const here = await stage();
  const session = await here.belay.createSession();
  const { id } = await session.processes.start("work", { feedback: "silent" });
  const handle = await (await neighbour(here)).session(session.id).processes.get(id);
  // It goes on when it is looked up, and a long time passes until its log is read.
  const looked = new Gate();
  here.store.plan("process", 2, { kind: "delay-answer", until: looked });
  const waiting = handle.wait();
  await settled();
  here.spawner.children[0]?.exit();
  await settled();
  await goOn(session);
  await here.store.trim(session.id, (await session.explain()).asOf);
  looked.open();
  expect(await waiting).toEqual({ processId: id, outcome: { kind: "completed" } });
});
