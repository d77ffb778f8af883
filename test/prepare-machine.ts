// Brings what the tests of processes need and the machine may not have: bubblewrap, from the system's packages. Says
// which ways to hold a tree together can be tested here, and which cannot.
import { execFileSync, spawnSync } from "node:child_process";
import { MECHANISMS } from "../src/process/mechanisms.ts";
import { here } from "./processes/here.ts";

/** A mirror that does not answer must not hold up everything else. */
const INSTALL_MS_MAX = 90_000;

if (!has("bwrap")) install();
const tested = here();
for (const mechanism of MECHANISMS) {
  console.log(`${mechanism}: ${tested.includes(mechanism) ? "tested" : "not on this machine, and so not tested"}`);
}

function install(): void {
  if (process.platform !== "linux" || process.getuid?.() !== 0 || !has("apt-get")) {
    console.log("bubblewrap is not here and cannot be installed from here.");
    return;
  }
  const quiet = {
    stdio: "pipe",
    timeout: INSTALL_MS_MAX,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  } as const;
  try {
    execFileSync("apt-get", ["update", "-qq"], quiet);
    execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "bubblewrap"], quiet);
    console.log("bubblewrap was installed.");
  } catch (error) {
    console.log(`bubblewrap could not be installed: ${String(error).split("\n")[0]}`);
  }
}

function has(program: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" }).status === 0;
}
