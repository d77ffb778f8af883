// What it costs to import the published package, against importing nothing at all, each in a fresh process.
import { execFileSync } from "node:child_process";
import { ascending, percentile, round } from "../report.ts";

const ROUNDS = 15;
const built = new URL("../../dist/index.js", import.meta.url).href;

/** Milliseconds of one import, measured inside the process that does it. */
function once(specifier: string): number {
  const measured = `await import("${specifier}");`;
  const program = `const from = performance.now(); ${measured} console.log(performance.now() - from);`;
  return Number(execFileSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" }));
}

once(built);
const [ours, floor] = [built, "data:text/javascript,"].map((specifier) =>
  percentile(ascending(Array.from({ length: ROUNDS }, () => once(specifier))), 0.5),
);
if (ours === undefined || floor === undefined) throw new Error("nothing was measured");
console.log(
  JSON.stringify({
    ours: { importMs: round(ours) },
    floor: { importNothingMs: round(floor) },
    ratios: { importVs50Ms: round(ours / 50) },
  }),
);
