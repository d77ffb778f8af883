import { expect, it } from "vitest";
import type { Clock } from "../../ports.ts";
import { storeContract } from "../contract.ts";
import { batch, created, SES } from "../contract-facts.ts";
import { MemoryStore } from "./memory-store.ts";

storeContract("the memory store", async () => {
  const clock = handClock();
  return { store: new MemoryStore({ clock }), pass: clock.pass };
});

it("an append to the memory store has happened when it returns, before it is awaited", async () => {
  const store = new MemoryStore({ clock: handClock() });
  const first = store.append(batch(SES, 0, [created(SES)]));
  const second = store.append(batch(SES, 0, [created(SES)]));
  expect(await second).toEqual({ kind: "moved", head: 1 });
  expect(await first).toEqual({ kind: "appended", head: 1 });
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
