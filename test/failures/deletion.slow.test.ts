// kill -9 at every step of a deletion: the session is there, closed, and can be deleted; or it is gone. Nothing else is
// touched.
import { spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { verifyAtRest } from "../../src/core/read/verify.ts";
import { type Belay, openBelay } from "../../src/sdk/belay.ts";
import { logOf } from "../fixtures/belay.ts";

const folder = mkdtempSync(join(tmpdir(), "belay-deletion-"));
const original = join(folder, "belay.db");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const open = (store: string): Promise<Belay> => openBelay({ store, agent: () => "done", loopWatch: "off" });

/** Enough for several steps. */
const RUNS = 500;
let head = 0;

beforeAll(async () => {
  const belay = await open(original);
  for (const id of ["ses_before", "ses_large", "ses_after"]) await belay.createSession({ id });
  for (let runs = 0; runs < RUNS; runs += 1) await belay.session("ses_large").prompt(`run ${runs}`).outcome;
  for (const id of ["ses_before", "ses_after"]) {
    const session = belay.session(id);
    await session.prompt("hello").outcome;
    head = (await session.row()).head;
  }
  await belay.close();
}, 60_000);

let copies = 0;

/** What it has printed before its end. */
async function deleted(file: string, step: number, when: string): Promise<string> {
  const program = join(import.meta.dirname, "deletion-child.ts");
  const words = [program, file, "ses_large", String(step), when];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  return text(child.stdout);
}

test.each(["before", "during", "after"])(
  "G28: a deletion that is killed %s any of its steps",
  { timeout: 120_000 },
  async (when) => {
    for (let step = 1; ; step += 1) {
      copies += 1;
      const file = join(folder, `copy-${copies}.db`);
      copyFileSync(original, file);
      const printed = await deleted(file, step, when);
      const belay = await open(file);
      const left = (await belay.sessions()).map(({ id, phase }) => `${id} ${phase}`);
      expect(left).toContain("ses_before open");
      expect(left).toContain("ses_after open");
      if (left.length > 2) {
        expect(left).toContain("ses_large closed");
        expect(await belay.session("ses_large").delete()).toMatchObject({ kind: "deleted" });
      }
      await expect(belay.session("ses_large").row()).rejects.toMatchObject({ code: "not_found" });
      await belay.createSession({ id: "ses_large" });
      expect(await belay.session("ses_large").prompt("again").outcome).toEqual({ kind: "completed" });
      for (const id of ["ses_before", "ses_after"]) {
        const log = await logOf(belay.session(id));
        expect(log).toHaveLength(head);
        expect(verifyAtRest(log)).toEqual([]);
      }
      await belay.close();
      // It came to its end before that step.
      if (printed !== "") return expect(step).toBeGreaterThan(3);
    }
  },
);
