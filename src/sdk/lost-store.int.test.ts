// A store whose file is removed while Belay is idle.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Notice } from "../ports/hooks.ts";
import { manualClock } from "../testing/manual-clock.ts";
import { openBelay } from "./belay.ts";

const agent = (): string => "done";

test("G28: an idle Belay whose directory was emptied reports it, and so does close()", async () => {
  const directory = mkdtempSync(join(tmpdir(), "belay-emptied-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const store = join(directory, "belay.db");
  const clock = manualClock();
  const reported = Promise.withResolvers<Notice>();
  const belay = await openBelay({ store, agent, clock, onNotice: reported.resolve });
  await belay.prompt("hello").outcome;
  for (const name of readdirSync(directory)) rmSync(join(directory, name));
  await clock.advance(2_000);
  expect(await reported.promise).toMatchObject({ type: "store", code: "store_corrupt" });
  await expect(belay.close()).rejects.toMatchObject({
    code: "store_corrupt",
    message: expect.stringContaining("was removed while it was open"),
  });
  await expect(openBelay({ store, agent })).rejects.toMatchObject({ code: "store_corrupt" });
});
