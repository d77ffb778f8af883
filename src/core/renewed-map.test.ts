// A map for entries that come and go all the time behaves as a map does, however many went.
import { expect, test } from "vitest";
import { RenewedMap } from "./renewed-map.ts";

test("it holds what a map would hold after as many additions and deletions", () => {
  const [map, model] = [new RenewedMap<string, number>(), new Map<string, number>()];
  for (let at = 0; at < 5_000; at += 1) {
    map.set(`entry ${at}`, at);
    model.set(`entry ${at}`, at);
    // Some stay for long, and most go soon.
    const gone = `entry ${at % 7 === 0 ? at - 700 : at - 3}`;
    expect(map.delete(gone)).toBe(model.delete(gone));
    expect(map.size).toBe(model.size);
  }
  expect([...map.keys()]).toEqual([...model.keys()]);
  expect([...map.values()]).toEqual([...model.values()]);
  expect(map.get("entry 4999")).toBe(4_999);
  expect([map.has("entry 4999"), map.has("entry 1")]).toEqual([true, false]);
  map.set("entry 4999", 1);
  expect(map.get("entry 4999")).toBe(1);
});

test("cleared, it is empty and can be used again", () => {
  const map = new RenewedMap<number, number>();
  map.set(1, 1);
  map.clear();
  expect([map.size, map.get(1), map.delete(1)]).toEqual([0, undefined, false]);
  map.set(2, 2);
  expect([...map.keys()]).toEqual([2]);
});
