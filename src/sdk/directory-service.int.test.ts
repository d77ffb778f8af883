// An embedded Belay that serves the directory of its store.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Engine } from "../engine/engine.ts";
import { openBelay } from "./belay.ts";

const agent = (): string => "done";
let place = "";
let store = "";
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "belay-served-"));
  store = join(place, "belay.db");
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(place, { recursive: true, force: true });
});

const isFound = (): readonly boolean[] => ["server.json", "belay.sock"].map((name) => existsSync(join(place, name)));

test("G40: it listens before it resumes any run, so that resumed work can be stopped", async () => {
  const { start } = Engine.prototype;
  const found = new Promise<readonly boolean[]>((resolve) => {
    vi.spyOn(Engine.prototype, "start").mockImplementation(function (this: Engine) {
      resolve(isFound());
      return start.call(this);
    });
  });
  await using belay = await openBelay({ store, agent, serve: true });
  expect(await found).toEqual([true, true]);
  expect(await belay.prompt("hello").outcome).toEqual({ kind: "completed" });
});

test("a failed start removes its socket and note, and the next one takes the directory", async () => {
  vi.spyOn(Engine.prototype, "start").mockRejectedValueOnce(new Error("The disk does not answer."));
  await expect(openBelay({ store, agent, serve: true })).rejects.toThrow("The disk does not answer.");
  expect(isFound()).toEqual([false, false]);
  await using belay = await openBelay({ store, agent, serve: true });
  expect(await belay.prompt("hello").outcome).toEqual({ kind: "completed" });
});
