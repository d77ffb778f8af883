// How the tests are run: two files at a time, each in a process of its own, so that none takes another with it.
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts", "sim/**/*.test.ts"],
    pool: "forks",
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 20_000,
    // A test that needs a second attempt has found something.
    retry: 0,
    restoreMocks: true,
  },
});
