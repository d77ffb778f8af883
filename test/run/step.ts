// One step of a test run: a program of the repository, started with the Node that runs this.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { constants, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../fixtures/repository.ts";
import { type Count, countOfExit, countOfReport, countOfSuite, type FileTime, fileTimesOf } from "./count.ts";

export type Step =
  | { readonly kind: "program"; readonly name: string; readonly run: readonly string[] }
  /** Prints its result as its last line (`--json`). */
  | { readonly kind: "suite"; readonly name: string; readonly run: readonly string[] }
  /** Tests of one lane of vitest.config.ts. `only`: words for vitest that choose some of them. */
  | { readonly kind: "tests"; readonly name: string; readonly lane: string; readonly only?: readonly string[] };

export interface StepResult extends Count {
  readonly seconds: number;
  readonly files: readonly FileTime[];
}

export interface StepOptions {
  /** Runs beside another step, with the processor time that leaves, and prints only if it fails. */
  readonly background: boolean;
}

/** No step takes longer than this, unless it hangs. */
const STEP_MS_MAX = 15 * 60_000;
const VITEST = "node_modules/vitest/vitest.mjs";
/** Most tests start programs, and each of those would compile the same files. */
const COMPILED = join(ROOT, "node_modules", ".cache", "compiled");

export async function runStep(step: Step, options: StepOptions): Promise<StepResult> {
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1_000;
  if (step.kind !== "tests") {
    const { code, stdout } = await runProgram(step.run, options);
    const counted = step.kind === "suite" ? countOfSuite(code, stdout) : countOfExit(code);
    return { ...counted, seconds: seconds(), files: [] };
  }
  const folder = mkdtempSync(join(tmpdir(), "belay-report-"));
  const report = join(folder, "vitest.json");
  const reporters = ["--reporter=dot", "--reporter=json", `--outputFile.json=${report}`];
  // A file of dots in colour is not to be read.
  const colour = process.stdout.isTTY ? [] : ["--no-color"];
  const { code } = await runProgram(
    [VITEST, "run", ...colour, "--project", step.lane, ...reporters, ...(step.only ?? [])],
    options,
  );
  const counted = countOfReport(report);
  const files = fileTimesOf(report);
  rmSync(folder, { recursive: true, force: true });
  // An error outside of any test fails the step, whatever was counted.
  const missing = code !== 0 && counted.failed === 0 ? { failed: 1, failures: [`vitest exited with ${code}`] } : {};
  return { ...counted, ...missing, seconds: seconds(), files };
}

function runProgram(
  [file = "", ...words]: readonly string[],
  { background }: StepOptions,
): Promise<{ readonly code: number; readonly stdout: string }> {
  if (!existsSync(join(ROOT, file))) return Promise.resolve({ code: 1, stdout: `${file} does not exist.` });
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [file, ...words], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILED },
      signal: AbortSignal.timeout(STEP_MS_MAX),
      killSignal: "SIGKILL",
    });
    if (background && child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_BELOW_NORMAL);
    let stdout = "";
    let all = "";
    const read = (isResult: boolean) => (text: string) => {
      if (isResult) stdout += text;
      if (background) all += text;
      else process.stdout.write(text);
    };
    child.stdout.setEncoding("utf8").on("data", read(true));
    child.stderr.setEncoding("utf8").on("data", read(false));
    child.on("error", (error) => {
      const why = error.name === "AbortError" ? `stopped after ${STEP_MS_MAX / 60_000} minutes` : String(error);
      resolve({ code: 1, stdout: why });
    });
    child.on("close", (code) => {
      if (background && code !== 0) process.stdout.write(all);
      resolve({ code: code ?? 1, stdout });
    });
  });
}
