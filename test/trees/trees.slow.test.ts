import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Child } from "../../src/ports/spawner.ts";
import { type OpenSpawner, openSpawner } from "../../src/process/spawner.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { here } from "../fixtures/mechanisms-here.ts";
import { markOf, SHAPES, survivorsOf } from "./shapes.ts";

let marks = (process.pid % 10_000) * 10_000 + 5_000;
const dir = mkdtempSync(join(tmpdir(), "belay-trees-test-"));

afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function up(child: Child): Promise<void> {
  for await (const page of child.output.follow()) if (page.text.includes("up")) return;
}

describe.each(here())("trees held by %s", (mechanism) => {
  let spawner: OpenSpawner;
  let mark: string;

  beforeAll(async () => {
    spawner = await openSpawner({ dir: join(dir, mechanism), workspace: dir, clock: systemClock, mechanism });
  });

  afterAll(() => spawner.close());

  afterEach(() => {
    for (const pid of survivorsOf(mark)) process.kill(pid, "SIGKILL");
  });

  test.each(SHAPES)("G19: no process survives: $name", { meta: { id: "G19/hostile-trees-all-die" } }, async (shape) => {
    marks += 1;
    mark = markOf(marks);
    const id = `proc_trees.${marks}` as const;
    const child = await spawner.spawn({ id, sessionId: "ses_trees", command: shape.command(mark) });
    await up(child);
    if (shape.end !== "alone") child.stop(shape.end === "forced" ? 0 : undefined);
    const end = await child.ended;
    const leak = shape.leaks?.[mechanism];
    // Where a survivor is documented there must be one: otherwise the documentation is wrong.
    expect(survivorsOf(mark).length > 0).toBe(leak !== undefined);
    // Without its leader the end of all processes cannot be verified, and that is reported.
    expect(end.escaped).toHaveLength(shape.unsure?.includes(mechanism) === true ? 1 : 0);
    for (const words of shape.says ?? []) expect(child.output.excerpt().head).toContain(words);
  });
});
