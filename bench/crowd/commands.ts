// 120 `belay run` that are started at once at one server, and cancels that are typed while 80 others run. The floor
// starts as many programs of Node that do nothing.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EXIT_OUTCOME } from "../../src/cli/commands/run/run-exit.ts";
import { ascending, percentile, round } from "../report.ts";

const RUNS = 120;
const CROWD = 80;
const CANCELS = 5;

const MAIN = join(import.meta.dirname, "../../src/cli/main.ts");
const AGENT = join(import.meta.dirname, "../../test/fixtures/obedient-agent.ts");

const home = mkdtempSync(join(tmpdir(), "belay-bench-"));
const env = { PATH: process.env.PATH, HOME: home, TMPDIR: home, BELAY_HOME: home };

function started(...words: readonly string[]) {
  const from = performance.now();
  const child = spawn(process.execPath, words, { env, cwd: home, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  const heard = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      for (const look of heard) look();
    });
  }
  const ended = new Promise<{ readonly code: number | null; readonly ms: number }>((resolve) =>
    child.once("close", (code) => resolve({ code, ms: performance.now() - from })),
  );
  /** Resolves when it has written this, with what was caught of it. */
  const writes = (pattern: RegExp) =>
    new Promise<string>((resolve) => {
      const look = (): void => {
        const match = pattern.exec(text);
        if (match !== null) resolve(match[1] ?? match[0]);
      };
      heard.add(look);
      look();
    });
  return { child, ended, writes };
}

const belay = (...words: readonly string[]) => started(MAIN, ...words);

const server = belay("serve", "--port", "0", "--agent", AGENT);
try {
  await server.writes(/is ready\.[\s\S]*try: .*stop-all/);

  const idle = await Promise.all(Array.from({ length: RUNS }, () => started("-e", "0").ended));
  const runs = await Promise.all(Array.from({ length: RUNS }, () => belay("run", "say hello").ended));

  const waiting = Array.from({ length: CANCELS }, () => belay("run", "wait here"));
  const ids = await Promise.all(waiting.map(({ writes }) => writes(/(run_\w+) in/)));
  const crowd = Array.from({ length: CROWD }, () => belay("run", "say hello").ended);
  const cancels = await Promise.all(ids.map((id) => belay("cancel", id).ended));
  const outcomes = await Promise.all(waiting.map(({ ended }) => ended));
  await Promise.all(crowd);

  const completed = runs.filter(({ code }) => code === EXIT_OUTCOME.completed);
  const cancelled = outcomes.filter(({ code }) => code === EXIT_OUTCOME.cancelled);
  const of = (all: readonly { readonly ms: number }[], share: number): number =>
    round(percentile(ascending(all.map(({ ms }) => ms)), share) / 1_000);
  const ours = {
    ...{ crowdRuns: RUNS, crowdRunsCompleted: completed.length },
    ...{ crowdRunP50Seconds: of(runs, 0.5), crowdRunMaxSeconds: of(runs, 1) },
    ...{ crowdCancels: CANCELS, crowdRunsCancelled: cancelled.length, crowdCancelMaxSeconds: of(cancels, 1) },
  };
  const floor = { crowdNodeP50Seconds: of(idle, 0.5), crowdNodeMaxSeconds: of(idle, 1) };
  const ratios = { crowdRunsVsNode: round(ours.crowdRunMaxSeconds / floor.crowdNodeMaxSeconds) };
  console.log(JSON.stringify({ ours, floor, ratios }));
} finally {
  server.child.kill("SIGTERM");
  await server.ended;
  rmSync(home, { recursive: true, force: true, maxRetries: 10 });
}
