// The figures and their page.
//
//   npm run figures -- SUITE [flags]    runs the suite and keeps its figure; flags stand for its own of the same name
//   npm run figures -- page             writes docs/reliability.md
//   npm run figures -- page --check     exits with 1 if the page is not what the figures say
//   npm run figures                     names the suites
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { failureMap } from "../failures/failure-map.ts";
import { filesByTestId } from "../failures/test-ids.ts";
import { ROOT, sources } from "../fixtures/repository.ts";
import { say } from "../run/suite.ts";
import { shortcomings } from "./demand.ts";
import { FIGURES_FOLDER, readFigures } from "./figure.ts";
import { PAGE, render } from "./page.ts";
import { plotOf } from "./plot.ts";
import { commandWith, record } from "./record.ts";
import { SUITES, suiteNamed, TESTER_SUITES } from "./suite-words.ts";

const [first, ...rest] = process.argv.slice(2);
// `record SUITE` is the long form of the same.
const [what, ...flags] = first === "record" ? rest : first === undefined ? [] : [first, ...rest];

if (what === "page") page(flags.includes("--check") ? "check" : "write");
else await keep(what ?? "", flags);

function page(how: "check" | "write"): void {
  const text = render(readFigures(), failureMap(), filesByTestId(sources()));
  const path = join(ROOT, PAGE);
  if (how === "write") writeFileSync(path, text);
  else if (readFileSync(path, "utf8") !== text) {
    say(`${PAGE} is not what the figures say. Write it again: npm run figures -- page`);
    process.exitCode = 1;
  }
}

async function keep(name: string, more: readonly string[]): Promise<void> {
  const suite = suiteNamed(name);
  if (suite === undefined) {
    say(`Which suite? ${[...SUITES, ...TESTER_SUITES].map((one) => one.name).join(", ")}`);
    process.exitCode = 2;
    return;
  }
  const figure = await record(commandWith(suite.command, more));
  mkdirSync(join(ROOT, FIGURES_FOLDER), { recursive: true });
  writeFileSync(join(ROOT, FIGURES_FOLDER, `${name}.json`), `${JSON.stringify(figure, undefined, 2)}\n`);
  const plot = plotOf(suite, figure);
  if (plot !== undefined) writeFileSync(join(ROOT, FIGURES_FOLDER, `${name}.svg`), plot);
  const problems = shortcomings(suite, figure);
  for (const problem of problems) say(problem);
  say(`${problems.length === 0 ? "kept" : "kept, though it does not hold"}: ${JSON.stringify(figure.result)}`);
  if (problems.length > 0) process.exitCode = 1;
}
