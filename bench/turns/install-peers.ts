// Brings the peers on first use. Not at `npm ci` of the repository: only who runs the bench should wait for them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";

const FOLDER = new URL("../peers", import.meta.url).pathname;
const LOCK = `${FOLDER}package-lock.json`;
/** npm writes it last. */
const INSTALLED = `${FOLDER}node_modules/.package-lock.json`;

export async function installPeers(progress: (line: string) => void): Promise<void> {
  if (existsSync(INSTALLED) && statSync(INSTALLED).mtimeMs >= statSync(LOCK).mtimeMs) return;
  progress("installing the peers in bench/peers (npm ci; only the first time) …");
  // None of them needs an install script, so none gets to run one.
  const words = ["ci", "--prefix", FOLDER, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const npm = spawn("npm", words, { cwd: FOLDER, stdio: ["ignore", 2, "inherit"] });
  const [code] = await once(npm, "close");
  if (code !== 0) throw new Error(`npm ci in bench/peers ended with ${code}.`);
}
