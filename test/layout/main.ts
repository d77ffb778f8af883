// `npm run layout`: measures the layout of `src` and draws its folder graph into docs/layout.svg.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, sources } from "../fixtures/repository.ts";
import { drawLayout } from "./draw.ts";
import { measureLayout } from "./layout.ts";

const { edges, ...findings } = measureLayout(sources());
writeFileSync(join(ROOT, "docs/layout.svg"), drawLayout(edges));
const counts = Object.fromEntries(Object.entries(findings).map(([name, found]) => [name, found.length]));
if (process.argv.includes("--json")) {
  process.stdout.write(`${JSON.stringify({ suite: "layout", ...counts })}\n`);
} else {
  for (const [name, found] of Object.entries(findings)) {
    process.stdout.write(`${name}: ${found.length}\n${found.map((one) => `  ${one}\n`).join("")}`);
  }
}
process.exitCode = Object.values(counts).every((count) => count === 0) ? 0 : 1;
