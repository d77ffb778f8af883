// Brings the programs that tests need and the machine may not have, from Debian's packages: bubblewrap for process
// trees, Chromium for browser tests. Prints what can be tested here, and what cannot.
import { execFileSync } from "node:child_process";
import { MECHANISMS } from "../src/process/containment/mechanisms.ts";
import { chromiumPath } from "./fixtures/browser.ts";
import { here } from "./fixtures/mechanisms-here.ts";
import { programPath } from "./fixtures/program-path.ts";

/** A mirror that does not answer must not hold up everything else. */
const INSTALL_MS_MAX = 120_000;

const missing = [
  ...(programPath("bwrap") === undefined ? ["bubblewrap"] : []),
  ...(chromiumPath() === undefined ? ["chromium"] : []),
];
if (missing.length > 0) install(missing);
const tested = here();
for (const mechanism of MECHANISMS) {
  console.log(`${mechanism}: ${tested.includes(mechanism) ? "tested" : "not on this machine, and so not tested"}`);
}
console.log(`browser: ${chromiumPath() ?? "none on this machine, and so not tested"}`);

function install(packages: readonly string[]): void {
  const names = packages.join(" and ");
  if (process.platform !== "linux" || process.getuid?.() !== 0 || programPath("apt-get") === undefined) {
    console.log(`${names} cannot be installed from here: it takes root and apt-get.`);
    return;
  }
  const quiet = {
    stdio: "pipe",
    timeout: INSTALL_MS_MAX,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  } as const;
  try {
    execFileSync("apt-get", ["update", "-qq"], quiet);
    execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", ...packages], quiet);
    console.log(`Installed ${names}.`);
  } catch (error) {
    console.log(`${names} could not be installed: ${String(error).split("\n")[0]}`);
  }
}
