// Benchmarks: ours, peers and physical floors in one run, on one machine. Figures are ratios; nothing here is a test.
//
// npm run bench -- --only spine --json
import { optionsOf } from "../test/run/suite.ts";
import { crowd } from "./crowd/crowd.ts";
import { processes } from "./processes/processes.ts";
import { type JudgedFigures, origin, report } from "./report.ts";
import { server } from "./server/server.ts";
import { spine } from "./spine/spine.ts";
import { stopping } from "./stopping/stopping.ts";
import { turns } from "./turns/turns.ts";

const BENCHES: Readonly<Record<string, (progress: (line: string) => void) => Promise<JudgedFigures>>> = {
  spine,
  turns,
  processes,
  server,
  stopping,
  crowd,
};

const HELP = `npm run bench -- [--only NAME] [--json]\n\nBenches: ${Object.keys(BENCHES).join(", ")}`;
const values = optionsOf(
  {
    only: { type: "string" },
    json: { type: "boolean", default: false },
    seed: { type: "string", default: "1" },
  },
  HELP,
);
const names = values.only === undefined ? Object.keys(BENCHES) : [values.only];
const progress = (line: string): void => console.error(`  ${line}`);
console.error(`seed ${values.seed} (these benches draw no random numbers)`);
for (const name of names) {
  const bench = BENCHES[name];
  if (bench === undefined) {
    console.error(`There is no bench "${name}". There is: ${Object.keys(BENCHES).join(", ")}.`);
    process.exit(2);
  }
  console.error(`bench ${name}`);
  const { missed = [], ...figures } = await bench(progress);
  const line = { suite: name, bench: name, ...figures, missed, ...origin(), seed: Number(values.seed) };
  console.log(values.json ? JSON.stringify(line) : report(name, figures));
  for (const goal of missed) console.error(`missed: ${goal}`);
  if (missed.length > 0) process.exitCode = 1;
}
