// The three kinds of tests, by file name:
//   *.test.ts       unit: no process, no thread, no socket, no database, no sleep (test/fixtures/unit-guard.ts)
//   *.int.test.ts   integration: processes, sockets, browsers, databases
//   *.slow.test.ts  crash, power, faults, known mistakes, soak, mutation, exhaustive searches
import { configDefaults, defineConfig } from "vitest/config";

const folders = (name: string): string[] => ["src", "test", "sim"].map((folder) => `${folder}/**/${name}`);

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 20_000,
    // A test that needs a second attempt has found something.
    retry: 0,
    restoreMocks: true,
    slowTestThreshold: 1_000,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: folders("*.test.ts"),
          exclude: [...configDefaults.exclude, "**/*.{int,slow}.test.ts"],
          setupFiles: ["test/fixtures/unit-guard.ts"],
          pool: "forks",
          isolate: false,
          maxWorkers: 2,
        },
      },
      {
        extends: true,
        // Each file in a process of its own, so that none takes another with it. Most of their time is waiting.
        test: { name: "int", include: folders("*.int.test.ts"), pool: "forks", maxWorkers: 4 },
      },
      {
        extends: true,
        test: { name: "slow", include: folders("*.slow.test.ts"), pool: "forks", maxWorkers: 2 },
      },
    ],
  },
});
