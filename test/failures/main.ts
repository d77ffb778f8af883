// The failure map as a table, and how much of it is shown: `node test/failures/main.ts [--json]`.
import { sources } from "../house.ts";
import { conclude, optionsOf, say } from "../suite.ts";
import { checkMap } from "./check-map.ts";
import { countRows, type FailureRow, failureMap } from "./failure-map.ts";

const values = optionsOf({ json: { type: "boolean", default: false } });
const rows = failureMap();
const findings = checkMap(rows, new Map(sources().map((file) => [file.path, file])));
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
    ...tests.map(({ file, name }) => `${file}: ${name}`),
    ...suites.map(({ suite, point }) => `${suite}: ${point}`),
  ];
  return shown.join("\n     ");
}
