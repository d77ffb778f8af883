// What `npm run power` says of a run that would show nothing.
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

test("nothing lost of nothing is no evidence: no cuts at all are refused", () => {
  const main = join(import.meta.dirname, "main.ts");
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, "--cuts", "0"], { encoding: "utf8" });
  expect(stderr).toBe("--cuts takes a whole number from 1 on, not 0: without a cut nothing is shown.\n");
  expect(stdout).toBe("");
  expect(status).toBe(2);
});
