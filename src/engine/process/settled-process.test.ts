// The end of a process that only the store knows, and a log that no longer contains it.
import { expect, test } from "vitest";
import { logOf } from "../../../test/fixtures/belay.ts";
import { type EngineProcesses, neighbour, stage } from "../../../test/fixtures/engine-processes.ts";
import { SNAPSHOT_EVENTS } from "../../core/limits.ts";
import type { ProcessId, Seq } from "../../core/model/ids.ts";
import type { Session } from "../../sdk/session.ts";
import { Gate } from "../../testing/gate.ts";
import { settled } from "../../testing/manual-clock.ts";

/** Records so much that a snapshot is made, and what was before it can be removed. */
async function goOn(session: Session): Promise<void> {
  const from = (await session.explain()).asOf;
  while ((await session.explain()).asOf < from + SNAPSHOT_EVENTS) await session.prompt("more").outcome;
}

async function ended({ spawner }: EngineProcesses, session: Session): Promise<ProcessId> {
  const handle = await session.processes.start("work");
  spawner.children.at(-1)?.exit();
  await handle.wait();
  return handle.id;
}

async function endOf(session: Session, id: ProcessId): Promise<Seq> {
  const end = (await logOf(session)).find((event) => event.type === "process.settled" && event.processId === id);
  return end?.seq ?? 0;
}

test("a process whose end retention has removed keeps its outcome", async () => {
  const here = await stage();
  const session = await here.belay.createSession();
  const first = await ended(here, session);
  await goOn(session);
  const second = await ended(here, session);
  const kept = await endOf(session, second);
  await goOn(session);
  // The log now begins with the end of another process, which must not be taken for its own.
  expect(await here.store.trim(session.id, kept)).toMatchObject({ kept });
  const endedAs = async (id: ProcessId): Promise<unknown> => (await session.processes.get(id)).wait();
  expect(await endedAs(first)).toEqual({ processId: first, outcome: { kind: "completed" } });
  expect(await endedAs(second)).toMatchObject({ processId: second, exit: { code: 0 } });
  // Now with its inbox item, which is not its end either.
  expect(await here.store.trim(session.id, kept + 1)).toMatchObject({ kept: kept + 1 });
  expect(await endedAs(second)).toEqual({ processId: second, outcome: { kind: "completed" } });
  here.store.read = async () => ({ events: [] });
  expect(await endedAs(second)).toEqual({ processId: second, outcome: { kind: "completed" } });
});

test("the end of a process is returned here, although the store does not answer", async () => {
  const { belay, spawner, store } = await stage();
  const session = await belay.createSession();
  const handle = await session.processes.start("work");
  store.always("process", { kind: "fail", code: "unavailable" });
  (await spawner.next()).exit(3);
  expect(await handle.wait()).toMatchObject({ exit: { code: 3 } });
});

test("a process whose end was removed before another worker could read it keeps its outcome", async () => {
  const here = await stage();
  const session = await here.belay.createSession();
  const { id } = await session.processes.start("work", { feedback: "silent" });
  const handle = await (await neighbour(here)).session(session.id).processes.get(id);
  // The process is live when it is looked up, and retention is faster than the follower that reads its end.
  const looked = new Gate();
  here.store.plan("process", 2, { kind: "delay-answer", until: looked });
  const waiting = handle.wait();
  await settled();
  here.store.read = async () => ({ events: [], gapTo: 1_000 });
  here.spawner.children[0]?.exit();
  await settled();
  looked.open();
  expect(await waiting).toEqual({ processId: id, outcome: { kind: "completed" } });
});
