// How many passed and failed, from what a step has printed or reported.
import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { ROOT } from "../fixtures/repository.ts";

export interface Count {
  readonly passed: number;
  readonly failed: number;
  /** Tests that this machine cannot run, or that do not apply to one of the cases of a table. */
  readonly skipped?: number;
  /** What failed, by name and with the beginning of its message. */
  readonly failures: readonly string[];
}

export interface FileTime {
  readonly file: string;
  readonly ms: number;
}

/** Of one message, in the list at the end. */
const MESSAGE_CHARS_MAX = 600;

export function countOfExit(code: number): Count {
  return code === 0
    ? { passed: 1, failed: 0, failures: [] }
    : { passed: 0, failed: 1, failures: [`exit code ${code}`] };
}

/** A suite prints its result as its last line. Known mistakes count one by one, everything else as one. */
export function countOfSuite(code: number, stdout: string): Count {
  const last = stdout.trimEnd().split("\n").at(-1) ?? "";
  const result: unknown = last.startsWith("{") ? JSON.parse(last) : undefined;
  const [known, found] = [field(result, "known"), field(result, "found")];
  if (typeof known !== "number" || typeof found !== "number") {
    return code === 0 && result !== undefined ? countOfExit(0) : { ...countOfExit(1), failures: [last] };
  }
  const missed = listIn(result, "missed").map((name) => `${name} was not found`);
  return { passed: found, failed: Math.max(known - found, code === 0 ? 0 : 1), failures: missed };
}

/** From vitest's JSON report. */
export function countOfReport(path: string): Count {
  if (!existsSync(path)) return { passed: 0, failed: 1, failures: ["vitest wrote no report"] };
  const report: unknown = JSON.parse(readFileSync(path, "utf8"));
  const files = listIn(report, "testResults");
  // A file that could not be loaded has no tests that could fail.
  const broken = files.filter(
    (file) => field(file, "status") === "failed" && listIn(file, "assertionResults").length === 0,
  );
  const failed = files
    .flatMap((file) => listIn(file, "assertionResults"))
    .filter((test) => field(test, "status") === "failed");
  const passed = Number(field(report, "numPassedTests"));
  return {
    passed,
    skipped: Number(field(report, "numPendingTests")) + Number(field(report, "numTodoTests")),
    failed: failed.length + broken.length + (passed + failed.length === 0 ? 1 : 0),
    failures: [
      ...broken.map((file) => describe(file, "name", field(file, "message"))),
      ...failed.map((test) => describe(test, "fullName", listIn(test, "failureMessages")[0])),
    ],
  };
}

export function fileTimesOf(path: string): readonly FileTime[] {
  if (!existsSync(path)) return [];
  const report: unknown = JSON.parse(readFileSync(path, "utf8"));
  return listIn(report, "testResults").map((file) => ({
    file: relative(ROOT, String(field(file, "name"))),
    ms: Number(field(file, "endTime")) - Number(field(file, "startTime")),
  }));
}

function describe(value: unknown, name: string, message: unknown): string {
  return `${field(value, name)}: ${`${message}`.slice(0, MESSAGE_CHARS_MAX).replaceAll("\n", "\n    ")}`;
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

function listIn(value: unknown, name: string): readonly unknown[] {
  const list = field(value, name);
  return Array.isArray(list) ? list : [];
}
