import { expect, it } from "vitest";
import type { Event } from "../../core/model/event.ts";
import type { Clock } from "../../ports/clock.ts";
import { storeContract } from "../contract/contract.ts";
import {
  accepted,
  add,
  batch,
  completed,
  created,
  processRequested,
  processSettled,
  SES,
  settled,
  started,
} from "../contract/facts.ts";
import { MemoryStore } from "./memory-store.ts";

storeContract("the memory store", async () => {
  const clock = handClock();
  return { store: new MemoryStore({ clock }), pass: clock.pass };
});

it("an append to the memory store takes effect when it returns, before it is awaited", async () => {
  const store = new MemoryStore({ clock: handClock() });
  const first = store.append(batch(SES, 0, [created(SES)]));
  const second = store.append(batch(SES, 0, [created(SES)]));
  expect(await second).toEqual({ kind: "moved", head: 1 });
  expect(await first).toEqual({ kind: "appended", head: 1 });
});

it.each<readonly [readonly Event[], string]>([
  [[created(SES)], "exists already"],
  [[...started("run_1"), ...started("run_2")], "has a live run, run_1, and cannot have run_2 too"],
  [[accepted("run_1")], "cannot accept run_1 a second time"],
  [[accepted("run_8", { key: "x" }), accepted("run_9", { key: "x" })], "has a run under the key x already"],
  [[settled("run_9")], "has no run run_9"],
  [[settled("run_1"), settled("run_1")], "has recorded an outcome of run_1 already"],
  [[processRequested(SES, 1), processRequested(SES, 1)], "cannot request proc_a.1 a second time"],
  [[processSettled(SES, 1, completed)], "has no process proc_a.1"],
])("the memory store names the invariant that a wrong decision would violate (%#)", async (events, why) => {
  const store = new MemoryStore({ clock: handClock() });
  await add(store, SES, 0, [created(SES), accepted("run_1", { key: "k" }), accepted("run_2")]);
  await expect(store.append(batch(SES, 3, events))).rejects.toThrow(`Session ses_a ${why}. Nothing was recorded.`);
});

function handClock(): Clock & { readonly pass: (ms: number) => void } {
  let time = 0;
  return {
    now: () => time,
    elapsed: () => time,
    after: () => () => undefined,
    pass: (ms) => {
      time += ms;
    },
  };
}
