// A store that refuses new work: the caller gets the store's code, whether or not the request has a key.
import { expect, it } from "vitest";
import { MemoryStore } from "../store/memory/memory-store.ts";
import { systemClock } from "../system/system-clock.ts";
import { faultyStore } from "../testing/faulty-store.ts";
import { openBelay } from "./belay.ts";

it("G28: a prompt with a key, in its own session, is refused as store_full and not as not_found", async () => {
  const store = faultyStore(new MemoryStore({ clock: systemClock }));
  const belay = await openBelay({ store, agent: () => "done" });
  store.trouble = { kind: "refusing", code: "store_full" };
  await expect(belay.prompt("hi").accepted).rejects.toMatchObject({ code: "store_full" });
  await expect(belay.prompt("hi", { key: "k1" }).accepted).rejects.toMatchObject({ code: "store_full" });
  await expect(belay.prompt("hi", { key: "k1" }).accepted).rejects.toMatchObject({ code: "store_full" });
  await expect(belay.createSession({ key: "k2" })).rejects.toMatchObject({ code: "store_full" });
  await expect(belay.createSession({ key: "k2" })).rejects.toMatchObject({ code: "store_full" });
  store.heal();
  await belay.close();
});
