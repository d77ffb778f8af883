// `belay trim` and `belay close` on a store that no server has open.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { openBelay } from "../../../sdk/belay.ts";
import { runClose } from "../close/close.ts";
import { runTrim } from "./trim.ts";

afterEach(() => void vi.restoreAllMocks());

/** A store with one session of three runs. */
async function threeRuns() {
  const directory = mkdtempSync(join(tmpdir(), "belay-trim-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const store = join(directory, "belay.db");
  const belay = await openBelay({ store, agent: () => "done" });
  const session = await belay.createSession();
  for (const text of ["one", "two", "three"]) await session.prompt(text).outcome;
  const { head } = await session.row();
  const [newest] = await session.runs();
  await belay.close();
  let out = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += String(text);
    return true;
  });
  return { store, id: session.id, head, begins: newest?.acceptedAt ?? 0, out: () => out };
}

test("trim keeps whole runs, and prints how many events it removed and why not more", async () => {
  const { store, id, head, begins, out } = await threeRuns();
  expect(await runTrim(id, { store, keep: "2" })).toBe(0);
  expect(out()).toBe(
    `${id}: ${begins - 1} events removed; its log begins at position ${begins} now. ` +
      "Older events than that belong to a run that has no outcome or would be cut in two.\n",
  );
  expect(await runTrim(id.slice(0, 12), { store, before: "5", json: true })).toBe(0);
  expect(out()).toContain(`{"kept":${begins},"removed":0}\n`);
  await runTrim(id, { store, keep: "0" });
  expect(out()).toMatch(new RegExp(`log begins at position ${head + 1} now\\.\n$`));
});

test.each([
  [{}, "how much"],
  [{ keep: "all" }, "--keep"],
  [{ before: "0" }, "--before"],
])("trim with %j is refused before anything is opened", async (flags, words) => {
  const refused = { code: "invalid", message: expect.stringContaining(words) };
  await expect(runTrim("ses_1", { ...flags, store: "/nowhere/belay.db" })).rejects.toMatchObject(refused);
});

test("close reports what was stopped, and the session accepts no more prompts", async () => {
  const { store, id, out } = await threeRuns();
  expect(await runClose(id, { store, reason: "done with it" })).toBe(0);
  expect(out()).toContain(`${id} is closed and accepts nothing more.\n`);
  await using belay = await openBelay({ store, agent: () => "done" });
  expect((await belay.session(id).row()).phase).toBe("closed");
  await expect(belay.session(id).prompt("more").accepted).rejects.toMatchObject({ code: "closed" });
});
