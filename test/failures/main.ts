// Prints the failure map as a table, and how many rows a test or a suite shows: `node test/failures/main.ts [--json]`.
import { sources } from "../fixtures/repository.ts";
import { conclude, optionsOf, say } from "../run/suite.ts";
import { checkMap } from "./check-map.ts";
import { countRows, type FailureRow, failureMap } from "./failure-map.ts";
import { KNOWN_MISTAKES } from "./known-mistakes.ts";
import { filesByTestId } from "./test-ids.ts";

const values = optionsOf({ json: { type: "boolean", default: false } });
const rows = failureMap();
const paths = filesByTestId(sources());
const findings = checkMap(rows, { files: sources(), mistakes: KNOWN_MISTAKES });
if (!values.json) for (const row of rows) say(`${row.id.padEnd(4)} ${row.failure}\n     ${whereShown(row)}`);
for (const finding of findings) say(finding);
conclude(
  { suite: "failures", ...countRows(rows), findings: findings.length },
  {
    json: values.json,
    holds: findings.length === 0,
  },
);

function whereShown({ tests = [], suites = [], doesNotApply }: FailureRow): string {
  if (doesNotApply !== undefined) return `— ${doesNotApply}`;
  const shown = [
    ...tests.map((id) => `${id} (${paths.get(id) ?? "missing"})`),
    ...suites.map(({ suite, point }) => `${suite}: ${point}`),
  ];
  return shown.join("\n     ");
}
