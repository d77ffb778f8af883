// What the self-tests have found out, kept on disk: later starts cost nothing, as long as nothing has changed.
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Mechanism } from "../spawner.ts";
import type { Machine } from "./machine.ts";
import { MECHANISMS } from "./mechanisms.ts";
import type { TestResult } from "./self-test.ts";
import type { Sight } from "./sight.ts";

export type TestResults = Readonly<Partial<Record<Mechanism, TestResult>>>;

/** Raised when the tests or the mechanisms change: what an older Belay has found out is then found out anew. */
const VERSION = 1;

const FILE = "containment.json";

/** What they depend on: this start of the machine, its kernel, our rights, and the very programs. */
export function keyOf(machine: Machine, sight: Sight | undefined): string {
  const programs = Object.entries(machine.programs).map(([name, path]) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    return [name, path, stat?.mtimeMs, stat?.size, stat?.ino];
  });
  const rights = [process.getuid?.(), process.getgid?.(), machine.mayUnshare, machine.cgroup];
  return JSON.stringify([VERSION, sight?.kind, sight?.bootId(), machine.kernel, process.version, rights, programs]);
}

/** None, if there are none, or they are of another machine or time. */
export function loadResults(dir: string, key: string): TestResults {
  try {
    const kept: unknown = JSON.parse(readFileSync(join(dir, FILE), "utf8"));
    if (typeof kept !== "object" || kept === null || !("key" in kept) || kept.key !== key) return {};
    return "results" in kept ? checked(kept.results) : {};
  } catch {
    return {};
  }
}

/** Best effort: without it the next start tests again. */
export function saveResults(dir: string, key: string, results: TestResults): void {
  const draft = join(dir, `.${FILE}.${process.pid}`);
  try {
    writeFileSync(draft, JSON.stringify({ key, results }), { mode: 0o600 });
    renameSync(draft, join(dir, FILE));
  } catch {
    rmSync(draft, { force: true });
  }
}

function checked(results: unknown): TestResults {
  if (typeof results !== "object" || results === null) return {};
  const found: Partial<Record<Mechanism, TestResult>> = {};
  for (const mechanism of MECHANISMS) {
    const result: unknown = Reflect.get(results, mechanism);
    if (typeof result !== "object" || result === null || !("kind" in result)) continue;
    const why = "why" in result && typeof result.why === "string" ? result.why : "it failed";
    found[mechanism] = result.kind === "passed" ? { kind: "passed" } : { kind: "failed", why };
  }
  return found;
}
