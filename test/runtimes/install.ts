// Installs what the tests of this folder run in and nothing else needs: other versions of Node.js, other runtimes, a
// bundler. Does nothing if they are there as they are locked.
import { execFileSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";

const place = (name: string): string => join(import.meta.dirname, name);

/** What npm writes when it has finished. */
const done = place("node_modules/.package-lock.json");
if (!existsSync(done) || statSync(done).mtimeMs < statSync(place("package-lock.json")).mtimeMs) {
  // Scripts of packages are not run: the binaries are in them.
  const words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
  execFileSync("npm", words, { cwd: import.meta.dirname, stdio: "inherit" });
}
