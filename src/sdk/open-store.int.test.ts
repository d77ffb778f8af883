// One file, opened twice in one process.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openBelay } from "./belay.ts";

const agent = (): string => "done";

function file(): string {
  const directory = mkdtempSync(join(tmpdir(), "belay-twice-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, "belay.db");
}

test("opened with the same options is the same Belay, even if both are opened at once", async () => {
  const store = file();
  const [one, other] = await Promise.all([openBelay({ store, agent }), openBelay({ store, agent })]);
  expect(other).toBe(one);
  expect(await openBelay({ store, agent })).toBe(one);
  await one.close();
  const next = await openBelay({ store, agent });
  expect(next).not.toBe(one);
  await next.close();
});

test("opened with other options is an error that names this process, and how to share one Belay", async () => {
  const store = file();
  const belay = await openBelay({ store, agent });
  await expect(openBelay({ store, agent: () => "edited" })).rejects.toMatchObject({
    code: "store_locked",
    message: expect.stringContaining("open already in this process"),
    hint: expect.stringContaining("globalThis"),
  });
  expect(await openBelay({ store, agent })).toBe(belay);
  await belay.close();
});
