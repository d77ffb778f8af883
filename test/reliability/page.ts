// The page of figures, made of figures: nothing in it is typed by hand but the words.
import type { FailureRow } from "../failures/failure-map.ts";
import { FIGURES_FOLDER, type Figure, type Figures, field, type Machine, numberIn, valueIn } from "./figure.ts";
import { defectTable, fixedDefects } from "./fixed-defects.ts";
import type { Suite } from "./published-suite.ts";
import { SUITES, TESTER_SUITES } from "./suite-words.ts";

export const PAGE = "docs/reliability.md";

/** `paths`: the file of each test, by its id. */
export function render(
  figures: Figures,
  rows: readonly FailureRow[],
  paths: ReadonlyMap<string, string> = new Map(),
): string {
  return [
    HEAD,
    summary(figures),
    machines(figures),
    "## The suites",
    ...SUITES.map((suite) => section(suite, figures.get(suite.name))),
    TESTED_TESTERS,
    ...TESTER_SUITES.map((suite) => section(suite, figures.get(suite.name))),
    NOT_COVERED,
    defectTable(fixedDefects()),
    failureTable(rows, paths),
  ]
    .join("\n\n")
    .concat("\n");
}

const HEAD = `# How far it has been tested

This page says what was done to break Belay, and what came of it. It is made by a script from what the suites print:
every number on it stands in a file of [docs/figures](figures), with the command, the seed, the day, the commit and the
machine. Run a command yourself and you get a line like the one it was made from.

How to read it:

- **A suite promises nothing by itself.** It says what was tried. What is promised is in the sections' first sentences.
- **Nothing found is not nothing there.** If none of N independent trials shows a fault, then with 95 % confidence fewer
  than 3 in N do (the rule of three). That is what "less than one in …" means here. It speaks of trials of this kind,
  as these dice throw them, and of no others.
- **A suite that cannot fail proves nothing.** So there are suites that must fail, and mistakes that must be found; they
  stand below with the rest.
- **Times are those of the machine they were measured on**, with whatever else it was doing.

\`npm run figures -- NAME\` runs a suite and keeps its figure; \`npm run figures -- page\` writes this page.`;

const TESTED_TESTERS = `## Who tests the testers

A checker that is never wrong and a checker that never looks say the same. These suites put something wrong in front of
them.`;

const NOT_COVERED = `## What is not covered

- **Disks that lie.** A disk that says it has synced and has not can lose what was acknowledged. The suite with such a
  disk shows that it would be seen; nothing can be promised about it.
- **Memory and processors that are wrong**, and bytes that change on the disk in ways that no check sees.
- **Copies of the file that are kept elsewhere and run behind.** What was acknowledged is in the file, not in
  its copies.
- **Several servers on one store.** There is one worker to a file; others are kept out, and that is tested. Replicas
  are not built.
- **macOS and Windows.** Every figure here is of Linux. On macOS processes are held by their group, which is weaker, and
  tested by a stand-in only.
- **Months.** A soak of an hour finds what grows by the hour.
- **What agents and tools do to the outside world.** Belay can say that the end of a call is not known. It
  cannot undo it.
- **Faults nobody has thought of.** The map below is a list of those somebody has.`;

/** One line for each, so that the page can be read in a minute. */
function summary(figures: Figures): string {
  const lines = [...SUITES, ...TESTER_SUITES].map((suite) => {
    const figure = figures.get(suite.name);
    const words =
      figure === undefined ? "not recorded yet" : Object.entries(suite.shown).slice(0, 4).flatMap(told(figure));
    const what = typeof words === "string" ? words : words.join(", ");
    const end = figure === undefined ? "" : ending(suite, figure);
    return `| [${suite.title}](#${anchor(suite.title)}) | ${what} | ${end} |`;
  });
  return ["## In short", "", "| suite | figures | result |", "|---|---|---|", ...lines].join("\n");
}

const told =
  ({ result }: Figure) =>
  ([key, word]: readonly [string, string]): readonly string[] =>
    valueIn(result, key) === undefined ? [] : [said(valueIn(result, key), word)];

const said = (value: unknown, word: string): string =>
  typeof value === "string" ? `${word} ${shown(value)}` : `${shown(value)} ${word}`;

const ending = ({ demands }: Suite, { exitCode }: Figure): string => {
  if (demands.ends === "fails") return exitCode === 0 ? "**does not fail, and should**" : "fails, as it must";
  return exitCode === 0 ? "holds" : "**does not hold**";
};

const anchor = (title: string): string =>
  title
    .toLowerCase()
    .replace(/[^a-z0-9 -]/g, "")
    .replaceAll(" ", "-");

function machines(figures: Figures): string {
  const all = Map.groupBy(figures, ([, { machine }]) => describe(machine));
  if (all.size === 0) return "## Where\n\nNothing is recorded yet.";
  const lines = [...all].map(([machine, ones]) => `- ${machine}: ${ones.map(([name]) => name).join(", ")}`);
  return ["## Where", "", ...lines].join("\n");
}

const describe = ({ cores, cpu, memoryGB, kernel, node, sqlite }: Machine): string =>
  `${cores} cores (${cpu}), ${memoryGB} GB, ${kernel}, Node ${node}, SQLite ${sqlite}`;

function section(suite: Suite, figure: Figure | undefined): string {
  return [
    `### ${suite.title}`,
    `**Promised.** ${suite.promised}`,
    `**What is done.** ${suite.attacked}`,
    `**What counts against it.** ${suite.violation}`,
    figure === undefined ? missing(suite) : measured(suite, figure),
  ]
    .map(folded)
    .join("\n\n");
}

const missing = ({ command: [script, ...flags] }: Suite): string =>
  `Not recorded yet. The command: \`npm run ${[script, "--", ...flags].join(" ")}\``;

function measured(suite: Suite, figure: Figure): string {
  const { command, startedAt, minutes, commit, result } = figure;
  const rows = Object.entries(suite.shown)
    .filter(([key]) => valueIn(result, key) !== undefined)
    .map(([key, word]) => `| ${word} | ${shown(valueIn(result, key))} |`);
  const seed = result.seed === undefined ? "no seed: it is not a matter of chance" : `seed ${shown(result.seed)}`;
  const when = `${startedAt.slice(0, 10)} ${startedAt.slice(11, 16)} UTC, ${minutes} min`;
  return [
    `\`${command}\``,
    "",
    ...["| | |", "|---|---|", ...rows],
    "",
    ...eachApart(suite, figure),
    ...(suite.plot === undefined ? [] : [`![${suite.title}](figures/${suite.name}.svg)`, ""]),
    `${sentence(suite, figure)}${when}, commit ${commit}, ${seed}, [figure](${FIGURES_FOLDER.replace(/^docs\//, "")}/` +
      `${suite.name}.json).`,
  ].join("\n");
}

/** A line for each of those that the result tells apart. */
function eachApart({ apart }: Suite, { result }: Figure): readonly string[] {
  const given = apart === undefined ? undefined : result[apart.key];
  if (apart === undefined || typeof given !== "object" || given === null) return [];
  const words = Object.entries(apart.shown);
  const lines = Object.entries(given).map(
    ([name, one]) => `| ${[name, ...words.map(([key]) => listed(field(one, key)))].join(" | ")} |`,
  );
  const head = [apart.one, ...words.map(([, word]) => word)];
  return [`| ${head.join(" | ")} |`, `|${"---|".repeat(head.length)}`, ...lines, ""];
}

/** Of things with reasons, what they are. */
function listed(value: unknown): string {
  if (typeof value !== "object" || value === null) return shown(value);
  return shown(Object.keys(value).join("; ") || "none");
}

/** The rule of three, where there was nothing to find. */
function sentence({ trials, demands }: Suite, { result, exitCode }: Figure): string {
  const count = trials === undefined ? undefined : numberIn(result, trials.count);
  const clean = exitCode === 0 && (demands.zero ?? []).every((key) => result[key] === 0);
  if (trials === undefined || count === undefined || count < RULE_TRIALS_MIN || !clean) return "";
  const oneIn = shown(Math.floor(count / 3));
  return `0 of ${shown(count)}: with 95 % confidence less than one ${trials.one} in ${oneIn} shows a fault. `;
}

/** With fewer the rule says nothing worth saying. */
const RULE_TRIALS_MIN = 30;

function shown(value: unknown): string {
  if (typeof value === "number") return Number.isInteger(value) ? value.toLocaleString("en-US") : String(value);
  return String(value).replaceAll("|", "\\|");
}

function failureTable(rows: readonly FailureRow[], paths: ReadonlyMap<string, string>): string {
  const lines = rows.map(
    (row) => `| ${row.id} | ${shown(row.failure)} | ${shown(row.promise)} | ${shown(whereShown(row, paths))} |`,
  );
  return [
    "## The failure map",
    "",
    "Every way of failing that we know of, what is promised for it, and which tests and suites show it. The id of a",
    "test stands in its options: search the linked file for it.",
    "",
    ...["| | failure | promise | shown by |", "|---|---|---|---|", ...lines],
  ].join("\n");
}

function whereShown({ tests = [], suites = [], doesNotApply, limit }: FailureRow, paths: ReadonlyMap<string, string>) {
  const ids = tests.map((id) => (paths.has(id) ? `[${id}](../${paths.get(id)})` : id));
  const points = suites.map(({ suite, point }) => `${suite}: ${point}`);
  const where = doesNotApply === undefined ? [...ids, ...points].join("<br>") : `does not apply: ${doesNotApply}`;
  return limit === undefined ? where : `${where}<br>*${limit}*`;
}

const LINE_CHARS_MAX = 120;

/** Paragraphs in lines of readable length; tables and commands as they are. */
function folded(paragraph: string): string {
  if (paragraph.startsWith("#") || paragraph.startsWith("`")) return paragraph;
  const lines: string[] = [];
  let line = "";
  for (const word of paragraph.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > LINE_CHARS_MAX) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}
