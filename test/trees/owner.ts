// Simulates a server: owns trees of every shape, prints when all of them run, and waits to be killed. Arguments: a
// state directory, a mechanism, the number of the first mark, and which shapes: `all`, those `marked` by a cookie
// throughout, or those that `ps` finds, instead of /proc.

import type { Mechanism } from "../../src/ports/spawner.ts";
import { openSpawner } from "../../src/process/spawner.ts";
import { systemClock } from "../../src/system/system-clock.ts";
import { psHere } from "./ps-here.ts";
import { ESCAPES_PS, markOf, SHAPES } from "./shapes.ts";

const [dir = "", mechanism = "group", first = "0", which = "all"] = process.argv.slice(2);

const spawner = await openSpawner({
  ...{ dir, workspace: dir, clock: systemClock, mechanism: mechanism as Mechanism },
  ...(which === "ps" ? { processTable: psHere() } : {}),
});
const shapes = SHAPES.map((shape, index) => ({ shape, mark: markOf(Number(first) + index), index }));

await Promise.all(
  shapes
    // A tree that ends by itself cannot be left behind.
    .filter(({ shape }) => shape.end !== "alone" && !(which === "marked" && shape.bare))
    .filter(({ shape }) => which !== "ps" || ESCAPES_PS[shape.name] === undefined)
    .map(async ({ shape, mark, index }) => {
      const id = `proc_owner.${index}` as const;
      const child = await spawner.spawn({ id, sessionId: "ses_owner", command: shape.command(mark) });
      for await (const page of child.output.follow()) if (page.text.includes("up")) return;
    }),
);
process.stdout.write("up\n");
// Until it is killed.
setInterval(() => undefined, 1_000);
