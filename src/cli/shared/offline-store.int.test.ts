// Deleting a session removes the saved output of its processes.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Belay, openBelay } from "../../sdk/belay.ts";
import { openOfflineStore } from "./offline-store.ts";

const openHere = (file: string): Promise<Belay> =>
  openBelay({ store: file, agent: () => "done", processes: { dir: `${file}.processes` } });

test.each([
  ["a Belay that has it open", openHere],
  ["a store that no server has open", openOfflineStore],
])("delete() removes the output files of its processes, through %s", async (_, open) => {
  const directory = mkdtempSync(join(tmpdir(), "belay-deleted-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "belay.db");
  const first = await openHere(file);
  const [deleted, kept] = [await first.createSession(), await first.createSession()];
  const outputs = await Promise.all(
    [deleted, kept].map(async ({ processes }) => {
      const child = await processes.start("echo said");
      await child.wait();
      return join(`${file}.processes`, "output", child.id);
    }),
  );
  await first.close();
  expect(outputs.map(existsSync)).toEqual([true, true]);
  const belay = await open(file);
  await belay.session(deleted.id).delete();
  await belay.close();
  expect(outputs.map(existsSync)).toEqual([false, true]);
});
