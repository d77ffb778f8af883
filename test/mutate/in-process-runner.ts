// A test runner for the mutation tester that loads every test once and then switches mutants on and off in the loaded
// code. Starting the framework anew for each mutant takes most of a second; this takes as long as the tests do.
//
// Invariants
// 1. A mutant is active only while its tests run.
// 2. What a test throws after its end, in the same round of the event loop, counts for the mutant that was active.
// 3. No mutant signals anybody but what its tests have started; one that tries is noticed.
import { registerHooks } from "node:module";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { InstrumenterContext, MutantCoverage, StrykerOptions } from "@stryker-mutator/api/core";
import { commonTokens, declareFactoryPlugin, PluginKind, tokens } from "@stryker-mutator/api/plugin";
import {
  type DryRunResult,
  DryRunStatus,
  determineHitLimitReached,
  type MutantRunOptions,
  type MutantRunResult,
  type TestResult,
  type TestRunner,
  TestStatus,
  toMutantRunResult,
} from "@stryker-mutator/api/test-runner";
import { type CollectedTest, collect, runTest, tests } from "./collected-tests.ts";
import { guardKill } from "./kill-guard.ts";
import { KillOrder } from "./kill-order.ts";

interface Options extends StrykerOptions {
  /** Relative to the folder that the mutants are in. */
  readonly inProcess: { readonly files: readonly string[] };
}

export const strykerValidationSchema = {
  properties: {
    inProcess: { type: "object", properties: { files: { type: "array", items: { type: "string" } } } },
  },
};

/** A test that takes so much longer than it did without a mutant waits for something that will not come. */
const HANGS_MS = 2_000;
const HANGS_TIMES = 20;

const STAND_IN = new URL("./vitest-stand-in.ts", import.meta.url).href;

class InProcessRunner implements TestRunner {
  readonly #files: readonly string[];
  readonly #context: InstrumenterContext;
  readonly #order = new KillOrder<CollectedTest>();
  #late: unknown;

  constructor(files: readonly string[], context: InstrumenterContext) {
    this.#files = files;
    this.#context = context;
    const heed = (error: unknown): void => {
      this.#late ??= error ?? new Error("Something was rejected with nothing.");
    };
    process.on("unhandledRejection", heed);
    process.on("uncaughtException", heed);
    guardKill(heed);
  }

  capabilities(): { readonly reloadEnvironment: boolean } {
    return { reloadEnvironment: false };
  }

  async dryRun(): Promise<DryRunResult> {
    await this.#load();
    const results: TestResult[] = [];
    for (const test of tests) {
      this.#context.currentTestId = test.id;
      results.push(await this.#result(test));
    }
    delete this.#context.currentTestId;
    const { mutantCoverage = { static: {}, perTest: {} } } = this.#context;
    return { status: DryRunStatus.Complete, tests: results, mutantCoverage: whileTestsRun(mutantCoverage) };
  }

  async mutantRun({ activeMutant, testFilter, hitLimit }: MutantRunOptions): Promise<MutantRunResult> {
    // Loaded with nothing active: what files make while they are loaded serves all mutants of this process.
    await this.#load();
    this.#activate(activeMutant.id, hitLimit);
    const wanted = testFilter === undefined ? undefined : new Set(testFilter);
    const results: TestResult[] = [];
    for (const test of this.#order.sorted(tests.filter(({ id }) => wanted?.has(id) ?? true))) {
      const usualMs = this.#order.usualMs(test);
      const result = await this.#result(test, usualMs === undefined ? undefined : HANGS_MS + HANGS_TIMES * usualMs);
      results.push(result);
      const found = result.status === TestStatus.Failed;
      this.#order.ran(test, result.timeSpentMs, found);
      if (found) break;
    }
    const reached = determineHitLimitReached(this.#context.hitCount, this.#context.hitLimit);
    this.#activate(undefined, undefined);
    return toMutantRunResult(reached ?? { status: DryRunStatus.Complete, tests: results });
  }

  /** Threads of the store look into the environment. */
  #activate(mutant: string | undefined, hitLimit: number | undefined): void {
    Object.assign(this.#context, { activeMutant: mutant, hitCount: hitLimit === undefined ? undefined : 0, hitLimit });
    if (mutant === undefined) delete process.env.__STRYKER_ACTIVE_MUTANT__;
    else process.env.__STRYKER_ACTIVE_MUTANT__ = mutant;
  }

  async #result(test: CollectedTest, msMax?: number): Promise<TestResult> {
    const began = performance.now();
    this.#late = undefined;
    const own = await runTest(test, msMax);
    await new Promise<void>((resolve) => setImmediate(resolve));
    const failure = own ?? this.#late;
    const { id, name, file } = test;
    const timeSpentMs = performance.now() - began;
    if (failure === undefined) return { id, name, fileName: file, timeSpentMs, status: TestStatus.Success };
    const failureMessage = failure instanceof Error ? failure.message : String(failure);
    return { id, name, fileName: file, timeSpentMs, status: TestStatus.Failed, failureMessage };
  }

  async #load(): Promise<void> {
    if (tests.length > 0) return;
    for (const path of this.#files) {
      await collect(path, () => import(pathToFileURL(resolve(path)).href));
    }
  }
}

/**
 * What tests reach while they run, and what is only reached while files are loaded. Of what is in both, only the first:
 * else the tester takes a new process for each such mutant, and half of the core is used to make rows of tests.
 */
function whileTestsRun({ perTest, static: loading }: MutantCoverage): MutantCoverage {
  const reached = new Set(Object.values(perTest).flatMap((counts) => Object.keys(counts)));
  return { perTest, static: Object.fromEntries(Object.entries(loading).filter(([mutant]) => !reached.has(mutant))) };
}

function openRunner(options: StrykerOptions): TestRunner {
  registerHooks({
    resolve: (specifier, from, next) =>
      specifier === "vitest" && from.parentURL?.includes("/test/mutate/vitest-stand-in.ts") !== true
        ? { url: STAND_IN, shortCircuit: true }
        : next(specifier, from),
  });
  // Where mutated code looks for what is active.
  const global = globalThis as typeof globalThis & { __stryker__?: InstrumenterContext };
  global.__stryker__ ??= {};
  return new InProcessRunner((options as Options).inProcess.files, global.__stryker__);
}
openRunner.inject = tokens(commonTokens.options);

export const strykerPlugins = [declareFactoryPlugin(PluginKind.TestRunner, "in-process", openRunner)];
