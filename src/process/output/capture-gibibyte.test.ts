// Separate from the other tests of a capture, because it would take minutes for each mutant.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { manualClock } from "../../testing/manual-clock.ts";
import { Capture } from "./capture.ts";
import { BLOCK_BYTES_MAX, HEAD_BYTES, TAIL_BYTES, WAITING_BYTES_MAX } from "./limits.ts";

test("G23: a gibibyte through a capture leaves exact counts and a few hundred KiB", {
  meta: { id: "G23/gibibyte-bounded-memory" },
}, async () => {
  const dir = mkdtempSync(join(tmpdir(), "belay-gibibyte-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  let drained = Promise.withResolvers<void>();
  const onDrain = (): void => drained.resolve();
  const capture = new Capture({ dir, clock: manualClock(), outputBytesMax: 4 * 1024 * 1024, onDrain });
  const piece = Buffer.alloc(64 * 1024, "0123456789abcde\n");
  const pieces = (1024 * 1024 * 1024) / piece.length;
  let heldMax = 0;
  for (let count = 0; count < pieces; count += 1) {
    const answer = capture.take(count % 4 === 0 ? "stderr" : "stdout", piece);
    heldMax = Math.max(heldMax, capture.heldBytes);
    if (answer === "pause") {
      await drained.promise;
      drained = Promise.withResolvers();
    }
  }
  await capture.end();
  const bytes = { stdout: 0.75 * 2 ** 30, stderr: 0.25 * 2 ** 30, all: 2 ** 30 };
  const kept = { stdout: 4 * 2 ** 20, stderr: 4 * 2 ** 20, all: 4 * 2 ** 20 };
  expect(capture.counts).toEqual({ bytes, kept, lines: 2 ** 30 / 16 });
  // Three heads and tails, and three queues with the slack of their blocks.
  expect(heldMax).toBeLessThanOrEqual(3 * (HEAD_BYTES + TAIL_BYTES + WAITING_BYTES_MAX + 2 * BLOCK_BYTES_MAX));
  expect(capture.heldBytes).toBe(3 * (HEAD_BYTES + TAIL_BYTES));
  expect(capture.trouble).toBeUndefined();
});
